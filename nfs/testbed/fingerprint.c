#include "testbed/fingerprint.h"

#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "testbed/child.h"

#define PRIME 0x100000001b3ull

uint64_t fingerprint(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *byte = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ byte[i]) * PRIME;
	return hash;
}

/* Add an installed file: an update changes its size or time. */
static uint64_t add_installed(uint64_t hash, const char *path)
{
	struct stat about;
	int64_t properties[3];

	if (!path[0] || stat(path, &about) < 0)
		return hash;
	properties[0] = about.st_size;
	properties[1] = about.st_mtim.tv_sec;
	properties[2] = about.st_mtim.tv_nsec;
	return fingerprint(fingerprint(hash, path, strlen(path)), properties, sizeof(properties));
}

static int add_library(struct dl_phdr_info *library, size_t size, void *hash)
{
	(void)size;
	*(uint64_t *)hash = add_installed(*(uint64_t *)hash, library->dlpi_name);
	return 0;
}

uint64_t program_fingerprint(const char *helper)
{
	FILE *file = fopen("/proc/self/exe", "rb");
	uint64_t hash = FINGERPRINT_BASIS;
	char bytes[1 << 16], path[PATH_MAX];
	size_t n;

	if (!file)
		return 0;
	while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
		hash = fingerprint(hash, bytes, n);
	if (ferror(file))
		hash = 0;
	fclose(file);
	if (hash == 0)
		return 0;
	dl_iterate_phdr(add_library, &hash);
	return program_find(helper, path, sizeof(path)) ? add_installed(hash, path) : hash;
}
