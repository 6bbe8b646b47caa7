#include "core/clock.h"

#include <rte_cycles.h>

#define TRIES 5
#define LEAST_SPAN_NS 20000000ull /* long enough that the 0.1 us of a reading do not matter */

struct instant {
	uint64_t tsc, ns;
};

static struct instant first;

/* Read both clocks together: of several readings the shortest, which was not interrupted. */
static struct instant read_both(void)
{
	struct instant closest = {0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		const uint64_t before = rte_rdtsc(), ns = clock_ns(),
			       duration = rte_rdtsc() - before;

		if (duration < least) {
			least = duration;
			closest = (struct instant){before + duration / 2, ns};
		}
	}
	return closest;
}

__attribute__((constructor)) static void begin(void)
{
	first = read_both();
}

double clock_tsc_hz(void)
{
	struct instant now = read_both();

	while (now.ns - first.ns < LEAST_SPAN_NS)
		now = read_both();
	return 1e9 * (double)(now.tsc - first.tsc) / (double)(now.ns - first.ns);
}
