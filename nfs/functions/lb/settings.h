/* Checks the settings of a load balancer. */
#ifndef NFS_FUNCTIONS_LB_SETTINGS_H
#define NFS_FUNCTIONS_LB_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct lb_settings {
	uint32_t backends, table, address, first_backend;
	bool gates;
};

/* False after printing which settings contradict each other. */
bool lb_check(const struct lb_settings *settings);

/*
 * Mark the backends of a list, such as 2,5, as not up. 0, or -EINVAL after printing why: no list,
 * or no such backend.
 */
int lb_parse_down(const char *list, bool *up, uint32_t backends);

#endif
