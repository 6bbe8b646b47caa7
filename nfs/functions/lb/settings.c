#include "functions/lb/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/metadata.h"
#include "functions/lb/maglev.h"

bool lb_check(const struct lb_settings *settings)
{
	const uint32_t own = settings->address - settings->first_backend;
	uint32_t prime = RTE_MAX(settings->table, settings->backends + 1);

	while (!maglev_is_prime(prime))
		prime++;
	if (settings->table != prime) {
		fprintf(stderr, "LB: table %u is not a prime above %u backends\nhint: %u\n",
			settings->table, settings->backends, prime);
		return false;
	}
	if (settings->gates && settings->backends > NF_MOST_BRANCHES) {
		fprintf(stderr, "LB: there are %u backends, but at most %d gates\n",
			settings->backends, NF_MOST_BRANCHES);
		return false;
	}
	if (!settings->gates && own < settings->backends) {
		fprintf(stderr, "LB: address is that of backend %u\n", own);
		return false;
	}
	return true;
}

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
