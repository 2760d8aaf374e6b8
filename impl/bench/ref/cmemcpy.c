// Reference for shm: C copies pages between the same kind of memory. The source pool is a memfd mapped for reading, the
// destination anonymous memory; 16 random page lists in turn, so that larger shapes are cold. One thread.
//
//	cmemcpy plain|nt POOL_MIB [MEMFD]
//
// plain is memcpy of the C library; nt stores past the cache (AVX-512, AVX2 or SSE2, whichever the processor has) and ends each
// list with SFENCE. MEMFD names a file of at least POOL_MIB to map as the source, for instance /proc/PID/fd/N; without it one
// is made. Reads lines "size count ms" from stdin and answers each with "GB/s p50 p99", the latter in microseconds a list;
// "error TEXT" for a line that makes no sense. Ends at end of input.
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LISTS = 16, MAX_SAMPLES = 1 << 20 };

static double lat[MAX_SAMPLES];

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int cmp(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

typedef void copier(char *d, const char *s, size_t n);

static void plain(char *d, const char *s, size_t n) { memcpy(d, s, n); }

// n is a multiple of 256, d aligned to 64: pages are multiples of 4096.
__attribute__((target("avx512f"))) static void nt512(char *d, const char *s, size_t n) {
	for (; n; d += 256, s += 256, n -= 256) {
		__m512i a = _mm512_loadu_si512(s), b = _mm512_loadu_si512(s + 64);
		__m512i c = _mm512_loadu_si512(s + 128), e = _mm512_loadu_si512(s + 192);
		_mm512_stream_si512((void *)d, a);
		_mm512_stream_si512((void *)(d + 64), b);
		_mm512_stream_si512((void *)(d + 128), c);
		_mm512_stream_si512((void *)(d + 192), e);
	}
}

__attribute__((target("avx2"))) static void nt256(char *d, const char *s, size_t n) {
	for (; n; d += 128, s += 128, n -= 128) {
		__m256i a = _mm256_loadu_si256((const void *)s), b = _mm256_loadu_si256((const void *)(s + 32));
		__m256i c = _mm256_loadu_si256((const void *)(s + 64)), e = _mm256_loadu_si256((const void *)(s + 96));
		_mm256_stream_si256((void *)d, a);
		_mm256_stream_si256((void *)(d + 32), b);
		_mm256_stream_si256((void *)(d + 64), c);
		_mm256_stream_si256((void *)(d + 96), e);
	}
}

static void nt128(char *d, const char *s, size_t n) {
	for (; n; d += 32, s += 32, n -= 32) {
		__m128i a = _mm_loadu_si128((const void *)s), b = _mm_loadu_si128((const void *)(s + 16));
		_mm_stream_si128((void *)d, a);
		_mm_stream_si128((void *)(d + 16), b);
	}
}

static copier *best(void) {
	if (__builtin_cpu_supports("avx512f")) return nt512;
	if (__builtin_cpu_supports("avx2")) return nt256;
	return nt128;
}

// shuffled fills p with the first n entries of a random order of pages 0..pages-1; p has room for all of them.
static void shuffled(int *p, int pages, int n) {
	for (int i = 0; i < pages; i++) p[i] = i;
	for (int i = 0; i < n; i++) {
		int j = i + random() % (pages - i), t = p[i];
		p[i] = p[j];
		p[j] = t;
	}
}

static void measure(copier *f, int fence, char *d, const char *s, size_t pool, size_t size, int n, int ms) {
	int pages = pool / size, *from[LISTS], *to[LISTS], m = 0;
	for (int k = 0; k < LISTS; k++) {
		shuffled(from[k] = malloc(pages * sizeof(int)), pages, n);
		shuffled(to[k] = malloc(pages * sizeof(int)), pages, n);
	}
	double sum = 0, end = now() + ms / 1e3;
	for (; (m < 3 || now() < end) && m < MAX_SAMPLES; m++) {
		int *p = from[m % LISTS], *q = to[m % LISTS];
		double t = now();
		for (int i = 0; i < n; i++) f(d + q[i] * size, s + p[i] * size, size);
		if (fence) _mm_sfence();
		t = now() - t;
		sum += t;
		lat[m] = t * 1e6;
	}
	qsort(lat, m, sizeof *lat, cmp);
	printf("%f %f %f\n", (double)size * n * m / 1e9 / sum, lat[m / 2], lat[(int)(m * .99)]);
	for (int k = 0; k < LISTS; k++) {
		free(from[k]);
		free(to[k]);
	}
}

int main(int argc, char **argv) {
	if (argc < 3 || (strcmp(argv[1], "plain") && strcmp(argv[1], "nt"))) {
		fprintf(stderr, "usage: cmemcpy plain|nt POOL_MIB [MEMFD]\n");
		return 2;
	}
	int nt = !strcmp(argv[1], "nt");
	size_t pool = strtoull(argv[2], 0, 10) << 20;
	int fd = argc > 3 ? open(argv[3], O_RDONLY | O_CLOEXEC) : memfd_create("cmemcpy", MFD_CLOEXEC);
	if (fd < 0 || pool == 0) {
		perror("source");
		return 1;
	}
	if (argc <= 3) {
		char *w = ftruncate(fd, pool) ? MAP_FAILED : mmap(0, pool, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (w == MAP_FAILED) {
			perror("source");
			return 1;
		}
		memset(w, 7, pool);
		munmap(w, pool);
	}
	char *s = mmap(0, pool, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	char *d = mmap(0, pool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED || d == MAP_FAILED) {
		perror("map");
		return 1;
	}
	memset(d, 1, pool);
	size_t size;
	int n, ms, got;
	while ((got = scanf("%zu %d %d", &size, &n, &ms)) == 3) {
		if (size < 4096 || size % 4096 || n < 1 || ms < 0 || (size_t)n > pool / size)
			printf("error size is a positive multiple of 4096 and count pages fit the pool\n");
		else
			measure(nt ? best() : plain, nt, d, s, pool, size, n, ms);
		fflush(stdout);
	}
	return got == EOF ? 0 : 2;
}
