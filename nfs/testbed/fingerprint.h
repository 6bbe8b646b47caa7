/* Fingerprints (Fowler, Noll and Vo's), to tell one thing from another. */
#ifndef NFS_TESTBED_FINGERPRINT_H
#define NFS_TESTBED_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#define FINGERPRINT_BASIS 0xcbf29ce484222325ull

/* That of what `hash` is the fingerprint of, FINGERPRINT_BASIS of nothing, with more bytes. */
uint64_t fingerprint(uint64_t hash, const void *bytes, size_t n);

/*
 * Of the bytes of this program, and of the path, size and time of each library that it has loaded
 * by now, and of `helper`, a program on the path that may not be there. 0 when it cannot read
 * itself.
 */
uint64_t program_fingerprint(const char *helper);

#endif
