/*
 * Reads a block list: one domain or URL a line, as `example.org` or `example.org/ads`; what follows
 * a `#` at the beginning or behind a space is a comment.
 *
 * A domain covers its subdomains, and a path what is below it, on subdomains, too. A scheme before
 * it is ignored. Users, ports, queries, wildcards and hosts in IPv6 are refused.
 */
#pragma once

#include "functions/url_filter/request.h"
#include "functions/url_filter/table.h"

/*
 * The entries of a file; NULL after printing, in the name of `name`, every fault as FILE:LINE, 20
 * at most.
 */
struct url_table *url_list_read(const char *name, const char *file);

/* `n` entries generated from a seed; NULL after printing why. */
struct url_table *url_list_generate(const char *name, uint32_t n, uint64_t seed);

/* Whether a list has one of a request's hosts with its path. */
bool url_list_has(const struct url_table *table, const struct request *request);
