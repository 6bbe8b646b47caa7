/* Cores for workers: one each if there are enough, with one more for everything else. */
#include "gpu/host/worker.h"

#include <sched.h>

bool gpu_pin(unsigned int thread, unsigned int n)
{
	cpu_set_t allowed, own;
	unsigned int seen = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
	    (unsigned int)CPU_COUNT(&allowed) <= n)
		return false;
	CPU_ZERO(&own);
	for (int core = 0; core < CPU_SETSIZE; core++) {
		/* the first one is for the thread that submits */
		if (CPU_ISSET(core, &allowed) && seen++ == thread + 1)
			CPU_SET(core, &own);
	}
	return pthread_setaffinity_np(pthread_self(), sizeof(own), &own) == 0;
}
