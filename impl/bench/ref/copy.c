// Reference: copies of page lists from a mapped source pool to private memory, one thread.
// Usage: copy SOURCEFILE POOLBYTES SEED. Reads "kind page pages" lines, kind memcpy or nt (non-temporal stores, AVX-512 or AVX2);
// for each it copies the next pages of a random walk over the pools and prints the nanoseconds. Prints "ready KIND" first, KIND
// being what nt uses ("none" if the processor has neither). Ends with its standard input.
#include <fcntl.h>
#include <immintrin.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
static long long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
__attribute__((target("avx512f"))) static void nt512(char *d, const char *s, size_t n) {
	for (size_t i = 0; i < n; i += 256) {
		__m512i a = _mm512_loadu_si512(s + i), b = _mm512_loadu_si512(s + i + 64), c = _mm512_loadu_si512(s + i + 128), e = _mm512_loadu_si512(s + i + 192);
		_mm512_stream_si512((void *)(d + i), a);
		_mm512_stream_si512((void *)(d + i + 64), b);
		_mm512_stream_si512((void *)(d + i + 128), c);
		_mm512_stream_si512((void *)(d + i + 192), e);
	}
	_mm_sfence();
}
__attribute__((target("avx2"))) static void nt256(char *d, const char *s, size_t n) {
	for (size_t i = 0; i < n; i += 128) {
		__m256i a = _mm256_loadu_si256((void *)(s + i)), b = _mm256_loadu_si256((void *)(s + i + 32)), c = _mm256_loadu_si256((void *)(s + i + 64)), e = _mm256_loadu_si256((void *)(s + i + 96));
		_mm256_stream_si256((void *)(d + i), a);
		_mm256_stream_si256((void *)(d + i + 32), b);
		_mm256_stream_si256((void *)(d + i + 64), c);
		_mm256_stream_si256((void *)(d + i + 96), e);
	}
	_mm_sfence();
}
static unsigned *shuffled(size_t n) {
	unsigned *p = malloc(n * sizeof *p);
	for (size_t i = 0; i < n; i++) p[i] = i;
	for (size_t i = 0; i + 1 < n; i++) { size_t j = i + random() % (n - i); unsigned t = p[i]; p[i] = p[j]; p[j] = t; }
	return p;
}
int main(int argc, char **argv) {
	if (argc != 4) return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	size_t size = strtoull(argv[2], 0, 10), page, pages, was = 0, at = 0;
	srandom(atoi(argv[3]));
	int fd = open(argv[1], O_RDONLY);
	char *s = mmap(0, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0), *d = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), kind[16];
	if (s == MAP_FAILED || d == MAP_FAILED) return 1;
	memset(d, 1, size);
	setvbuf(stdout, 0, _IOLBF, 0);
	int wide = __builtin_cpu_supports("avx512f"), any = wide || __builtin_cpu_supports("avx2");
	printf("ready %s\n", wide ? "avx512" : any ? "avx2" : "none");
	unsigned *from = 0, *to = 0;
	while (scanf("%15s %zu %zu", kind, &page, &pages) == 3) {
		if (page != was) { free(from); free(to); from = shuffled(size / page); to = shuffled(size / page); was = page; at = 0; }
		if (at + pages > size / page) at = 0;
		int nt = !strcmp(kind, "nt");
		long long t = now();
		for (size_t i = at; i < at + pages; i++) {
			char *y = d + to[i] * page;
			const char *x = s + from[i] * page;
			if (!nt) memcpy(y, x, page);
			else if (wide) nt512(y, x, page);
			else if (any) nt256(y, x, page);
			else return 3;
		}
		printf("%lld\n", now() - t);
		at += pages;
	}
}
