/* Counts the bytes of the heap, to be loaded before everything else (LD_PRELOAD): what is allocated now, and the most
   since heap_reset(). Other functions of the C library that allocate go through these. */
#include <errno.h>
#include <malloc.h>
#include <stddef.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t), __libc_free(void *);

static long now, most;

static void *taken(void *p)
{
    if (p) {
        long sum = __atomic_add_fetch(&now, (long)malloc_usable_size(p), __ATOMIC_RELAXED);
        if (sum > __atomic_load_n(&most, __ATOMIC_RELAXED))
            __atomic_store_n(&most, sum, __ATOMIC_RELAXED);
    }
    return p;
}

static void left(size_t size) { __atomic_sub_fetch(&now, (long)size, __ATOMIC_RELAXED); }

void *malloc(size_t n) { return taken(__libc_malloc(n)); }
void *calloc(size_t n, size_t m) { return taken(__libc_calloc(n, m)); }
void *memalign(size_t a, size_t n) { return taken(__libc_memalign(a, n)); }
void *aligned_alloc(size_t a, size_t n) { return taken(__libc_memalign(a, n)); }

int posix_memalign(void **p, size_t a, size_t n)
{
    *p = taken(__libc_memalign(a, n));
    return *p || !n ? 0 : ENOMEM;
}

void *realloc(void *p, size_t n)
{
    size_t before = p ? malloc_usable_size(p) : 0;
    void *q = __libc_realloc(p, n);
    if (q || !n)
        left(before);
    return taken(q);
}

void free(void *p)
{
    if (p)
        left(malloc_usable_size(p));
    __libc_free(p);
}

long heap_reset(void)
{
    __atomic_store_n(&most, now, __ATOMIC_RELAXED);
    return now;
}

long heap_most(void) { return most; }
