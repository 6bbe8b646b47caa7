/* The backends of a load balancer, read from a file. */
#pragma once

#include <stdint.h>

struct backend {
	uint32_t address; /* in host byte order */
	uint16_t weight;  /* its share of the table, relative to those of others */
};

/*
 * Read the backends of a file into `backends`, at most `most`; returns how many, or 0 after
 * printing why. A line is
 *
 *     ADDRESS [WEIGHT]
 *
 * ADDRESS is one of IPv4, which no other line has; WEIGHT is from 1 to 65535, or 1 without.
 */
uint32_t backends_read(const char *of, const char *path, struct backend *backends, uint32_t most);
