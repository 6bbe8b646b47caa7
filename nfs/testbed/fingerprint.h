/* Fingerprints by the FNV-1a hash (Fowler, Noll and Vo). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FINGERPRINT_BASIS 0xcbf29ce484222325ull

/* Extend `hash`, the fingerprint of earlier bytes, by more bytes; start with FINGERPRINT_BASIS. */
uint64_t fingerprint(uint64_t hash, const void *bytes, size_t n);

/*
 * The fingerprint of this program's bytes, of the path, size and time of each loaded library, and
 * of `helper`, a program searched in PATH that may be missing. 0 if the program cannot read its own
 * file.
 */
uint64_t program_fingerprint(const char *helper);
