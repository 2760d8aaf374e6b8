// Reference: one loopback TCP stream between two processes, blocking, 1 MiB a write and a read, from one 256 MiB pool to another
// (cold: each request goes on where the last one ended). Usage: stream CONGESTION POOLBYTES
// Reads "bytes" lines; for each it sends that many bytes and prints the nanoseconds from before the first write to after the last
// read (CLOCK_MONOTONIC of both processes). Prints "ready" first. Ends with its standard input.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#define UNIT (1UL << 20)
static long long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static char *pool(size_t n) {
	char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) exit(1);
	memset(p, 1, n);
	return p;
}
static void whole(int fd, void *b, size_t n, int out) {
	for (char *p = b; n;) {
		ssize_t k = out ? write(fd, p, n) : read(fd, p, n);
		if (k <= 0) exit(0);
		p += k;
		n -= k;
	}
}
static void sender(int c, int orders, int times, char *p, size_t size) {
	size_t o = 0, n;
	for (;;) {
		whole(orders, &n, sizeof n, 0);
		long long t = now();
		while (n) {
			size_t k = n < UNIT ? n : UNIT;
			if (o + k > size) o = 0;
			whole(c, p + o, k, 1);
			o += k;
			n -= k;
		}
		whole(times, &t, sizeof t, 1);
	}
}
int main(int argc, char **argv) {
	if (argc != 3) return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	size_t size = strtoull(argv[2], 0, 10);
	int l = socket(AF_INET, SOCK_STREAM, 0), orders[2], times[2];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	setsockopt(l, IPPROTO_TCP, TCP_CONGESTION, argv[1], strlen(argv[1]));
	if (bind(l, (void *)&a, n) || listen(l, 1) || getsockname(l, (void *)&a, &n) || pipe(orders) || pipe(times)) return 1;
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(orders[1]);
		int c = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(c, IPPROTO_TCP, TCP_CONGESTION, argv[1], strlen(argv[1]));
		int on = 1;
		setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // as Go's sockets
		if (connect(c, (void *)&a, n)) return 1;
		sender(c, orders[0], times[1], pool(size), size);
	}
	int c = accept(l, 0, 0);
	char *p = pool(size);
	setvbuf(stdout, 0, _IOLBF, 0);
	puts("ready");
	size_t want, o = 0;
	while (scanf("%zu", &want) == 1) {
		long long t0, t1;
		whole(orders[1], &want, sizeof want, 1);
		for (size_t left = want; left;) {
			size_t k = left < UNIT ? left : UNIT;
			if (o + k > size) o = 0;
			whole(c, p + o, k, 0);
			o += k;
			left -= k;
		}
		t1 = now();
		whole(times[0], &t0, sizeof t0, 0);
		printf("%lld\n", t1 - t0);
	}
}
