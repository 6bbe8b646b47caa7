/* The backends of a load balancer that are down. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Mark the backends of a list, such as 2,5, as not up. 0, or -EINVAL after printing why: no list,
 * or no such backend.
 */
int lb_parse_down(const char *list, bool *up, uint32_t backends);
