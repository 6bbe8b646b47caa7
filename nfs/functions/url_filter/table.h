/*
 * A set of domains and of paths on them. A domain covers its subdomains, a path what is below it.
 *
 * Entries are found by a hash that grows with the name: first over the host from its end, label by
 * label, then over the path. So a lookup reads each byte once, and compares few strings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define URL_LONGEST_HOST 253 /* RFC 1035, section 2.3.4, as text */
#define URL_DEEPEST 16       /* most segments of a path in the table */

struct url_table;

/* A table for `n` entries; NULL after printing why in the name of `name`. */
struct url_table *url_table_create(const char *name, uint32_t n);
void url_table_destroy(struct url_table *table);

/*
 * Add a host in lower case with a path, without a slash at its end; an empty path covers the host.
 * Both are copied. False without memory.
 */
bool url_table_add(struct url_table *table, const char *host, size_t host_length, const char *path,
		   size_t path_length);

/* Whether an entry covers a host in lower case and a normal path. */
bool url_table_covers(const struct url_table *table, const char *host, size_t host_length,
		      const char *path, size_t path_length);
