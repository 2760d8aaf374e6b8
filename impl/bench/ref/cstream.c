// Reference for tcp: one blocking C stream over loopback between two processes, pages gathered and scattered from and into pools
// of their own, at most 1 MiB a system call.
//
//	cstream CONGESTION stream|ack cold|hot POOL_MIB
//
// CONGESTION is set on both sockets (reno, bbr, cubic, ...). cold walks random page lists over the pools, hot uses the first
// pages only. stream never waits for the receiver: GB/s is the plain stream's, and a request's time is what the sender needed
// to hand it over. ack has the receiver answer each request with one byte: a request's time is until that byte is in.
// Reads lines "size count ms" from stdin and answers each with "GB/s p50 p99", the latter in microseconds a request.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LISTS = 16, MAX_SAMPLES = 1 << 20, CALL = 1 << 20, VECS = 256 };

static double lat[MAX_SAMPLES];
static size_t pool;
static int cold, ack;

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int cmp(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static char *memory(void) {
	char *p = mmap(0, pool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		perror("pool");
		exit(1);
	}
	memset(p, 1, pool);
	return p;
}

// all moves exactly n bytes of one piece; 0 when the other end has closed.
static int all(int fd, void *b, size_t n, int in) {
	for (size_t k = 0; k < n;) {
		ssize_t r = in ? read(fd, (char *)b + k, n - k) : write(fd, (char *)b + k, n - k);
		if (r <= 0) return 0;
		k += r;
	}
	return 1;
}

// shape is one line of input; both ends draw the same kind of lists from it.
struct shape {
	uint64_t size, n, go; // go: 0 ends the shape
};

// pages gives the offsets of list k of a shape; one call a shape, LISTS * n entries.
static size_t *lists(struct shape h) {
	size_t count = pool / h.size, *at = malloc(LISTS * h.n * sizeof *at), *p = malloc(count * sizeof *p);
	for (int k = 0; k < LISTS; k++) {
		for (size_t i = 0; i < count; i++) p[i] = i;
		for (size_t i = 0; i < h.n; i++) {
			size_t j = cold ? i + random() % (count - i) : i, t = p[i];
			p[i] = p[j];
			p[j] = t;
			at[k * h.n + i] = p[i] * h.size;
		}
	}
	free(p);
	return at;
}

// request moves one list with calls of at most CALL bytes; 0 when the other end has closed.
static int request(int fd, char *mem, const size_t *at, struct shape h, int in) {
	size_t page = 0, off = 0;
	while (page < h.n) {
		struct iovec v[VECS];
		int n = 0;
		size_t bytes = 0, p = page, o = off;
		while (p < h.n && n < VECS && bytes < CALL) {
			size_t k = h.size - o < CALL - bytes ? h.size - o : CALL - bytes;
			v[n++] = (struct iovec){mem + at[p] + o, k};
			bytes += k;
			if ((o += k) == h.size) p++, o = 0;
		}
		ssize_t r = in ? readv(fd, v, n) : writev(fd, v, n);
		if (r <= 0) return 0;
		off += r;
		page += off / h.size;
		off %= h.size;
	}
	return 1;
}

static void receiver(int fd) {
	char *mem = memory(), one = 1;
	struct shape h;
	if (!all(fd, &one, 1, 0)) return;
	while (all(fd, &h, sizeof h, 1)) {
		size_t *at = lists(h);
		for (uint64_t r = 0; h.go; r++) {
			if (!request(fd, mem, at + r % LISTS * h.n, h, 1) || (ack && !all(fd, &one, 1, 0)) || !all(fd, &h.go, sizeof h.go, 1)) return;
		}
		free(at);
		if (!all(fd, &one, 1, 0)) return;
	}
}

static int measure(int fd, char *mem, struct shape h, int ms) {
	size_t *at = lists(h);
	char one;
	int m = 0;
	if (!all(fd, &h, sizeof h, 0)) return 0;
	double start = now(), end = start + ms / 1e3;
	for (h.go = 1; h.go; m++) {
		double t = now();
		if (!request(fd, mem, at + (size_t)(m % LISTS) * h.n, h, 0) || (ack && !all(fd, &one, 1, 1))) return 0;
		lat[m] = (now() - t) * 1e6;
		h.go = (m < 2 || now() < end) && m < MAX_SAMPLES - 1;
		if (!all(fd, &h.go, sizeof h.go, 0)) return 0;
	}
	if (!all(fd, &one, 1, 1)) return 0; // everything has arrived
	double took = now() - start;
	free(at);
	qsort(lat, m, sizeof *lat, cmp);
	printf("%f %f %f\n", (double)h.size * h.n * m / 1e9 / took, lat[m / 2], lat[(int)(m * .99)]);
	return 1;
}

static int congestion(int fd, const char *name) {
	int on = 1;
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, strlen(name)) || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int main(int argc, char **argv) {
	if (argc < 5) {
		fprintf(stderr, "usage: cstream CONGESTION stream|ack cold|hot POOL_MIB\n");
		return 2;
	}
	ack = !strcmp(argv[2], "ack");
	cold = !strcmp(argv[3], "cold");
	pool = strtoull(argv[4], 0, 10) << 20;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	if (congestion(l, argv[1]) || bind(l, (void *)&a, n) || listen(l, 1) || getsockname(l, (void *)&a, &n)) {
		perror(argv[1]);
		return 1;
	}
	pid_t child = fork();
	if (child == 0) {
		receiver(accept(l, 0, 0));
		_exit(0);
	}
	int c = socket(AF_INET, SOCK_STREAM, 0);
	if (child < 0 || congestion(c, argv[1]) || connect(c, (void *)&a, n)) {
		perror("connect");
		return 1;
	}
	close(l);
	char *mem = memory(), one;
	if (!all(c, &one, 1, 1)) return 1; // the receiver's pool is there
	struct shape h;
	int ms, ok = 1;
	while (ok && scanf("%lu %lu %d", &h.size, &h.n, &ms) == 3) {
		h.go = 1;
		if (h.size < 1 || h.n < 1 || ms < 0 || h.n > pool / h.size)
			printf("error count pages of size do not fit the pool\n");
		else
			ok = measure(c, mem, h, ms);
		fflush(stdout);
	}
	close(c);
	waitpid(child, 0, 0);
	return !ok;
}
