#include "functions/lb/down.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int lb_parse_down(const char *list, bool *up, uint32_t backends)
{
	while (*list) {
		char *end;
		const unsigned long backend = strtoul(list, &end, 10);
		const bool number = end > list && *list >= '0' && *list <= '9';

		if (!number || (*end && (*end != ',' || !end[1]))) {
			fprintf(stderr,
				"LB: down: \"%s\" is not a list of numbers\n"
				"hint: separate them by commas, without spaces: 2,5\n",
				list);
			return -EINVAL;
		}
		if (backend >= backends) {
			fprintf(stderr, "LB: down: there is no backend %.*s\nhint: from 0 to %u\n",
				(int)(end - list), list, backends - 1);
			return -EINVAL;
		}
		up[backend] = false;
		list = *end ? end + 1 : end;
	}
	return 0;
}
