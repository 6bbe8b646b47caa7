#include "testbed/testbed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accelerators/accelerator.h"
#include "testbed/names.h"

#define LEAST_CORES 2 /* a network function and one bench */
/* Those that get a core unless others are asked for. */
#define USUAL_ACCELERATORS (NF_USES(ACCELERATOR_REGEX) | NF_USES(ACCELERATOR_COMPRESSION))

/* The usual accelerators that at least one function or bench uses. */
static unsigned int used_accelerators(void)
{
	unsigned int used = 0;

	for (const struct nf_kind *nf = nf_first(); nf; nf = nf->next)
		used |= nf->accelerators;
	for (const struct bench_kind *bench = bench_first(); bench; bench = bench->next)
		used |= bench->accelerators;
	return used & USUAL_ACCELERATORS;
}

static unsigned int clients(const struct testbed *testbed)
{
	return testbed->options.share_client_core ? 1 : LEAST_CORES;
}

/* Engines take the last cores, as long as enough remain for clients. */
static void create_engines(struct testbed *testbed)
{
	const struct options *options = &testbed->options;
	const unsigned int used =
		options->accelerators_given ? options->accelerators : used_accelerators();
	unsigned int cores = testbed->machine.n_cores;

	testbed->engines.clients_share_a_core = options->share_client_core;
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++) {
		if (!(used & NF_USES(kind)))
			continue;
		if (cores <= clients(testbed)) {
			fprintf(stderr, "testbed: no core is left for an engine of %s\n",
				accelerator_names[kind]);
			continue;
		}
		testbed->engines.kinds[kind] = accelerator_create((enum accelerator_kind)kind);
		if (testbed->engines.kinds[kind])
			cores--;
	}
}

/* Without these times disturbed windows cannot be detected, so nothing is measured. */
static int check_ticks(void)
{
	struct core_ticks *cores = calloc(CPU_SETSIZE, sizeof(*cores));
	const int result = cores ? core_ticks_read(CORE_TICKS, cores) : -ENOMEM;

	if (result < 0)
		fprintf(stderr, "testbed: " CORE_TICKS " does not report the load of cores: %s\n",
			strerror(-result));
	free(cores);
	return result;
}

int testbed_open(struct testbed *testbed, const volatile bool *stop)
{
	const struct options *options = &testbed->options;
	int result = machine_read(&testbed->machine, options->cores);

	if (result < 0)
		return result;
	if (testbed->machine.n_cores < LEAST_CORES) {
		fprintf(stderr, "testbed: %d cores are needed to run two workloads side by side\n",
			LEAST_CORES);
		return -ENODEV;
	}
	snprintf(testbed->name, sizeof(testbed->name), "host-%s%s", testbed->machine.model,
		 options->share_client_core ? "-shared-client-core" : "");
	testbed->stop = stop;
	testbed->limits = options->limits;
	windows_know(options->fastest_probe);
	result = check_ticks();
	if (result == 0 && options->counters != COUNTERS_NONE)
		result = counting_open(&testbed->counting, &testbed->machine, options, stop);
	if (result < 0)
		return result;
	result = workers_start(&testbed->workers, &testbed->machine,
			       &(struct eal_config){.memory_mb = options->memory_mb,
						    .realtime = options->realtime,
						    .ports = options->ports});
	if (result == 0)
		create_engines(testbed);
	if (result == 0 && options->counters != COUNTERS_NONE)
		result = counting_start(&testbed->counting);
	return result;
}

void testbed_close(struct testbed *testbed)
{
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++)
		accelerator_destroy(testbed->engines.kinds[kind]);
	counting_close(&testbed->counting);
	workers_stop(&testbed->workers);
}

unsigned int testbed_cores(const struct testbed *testbed)
{
	unsigned int cores = testbed->machine.n_cores;

	if (testbed->options.share_client_core)
		return MOST_SHARING;
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++)
		cores -= testbed->engines.kinds[kind] != NULL;
	return cores;
}

void testbed_missing(const struct testbed *testbed, unsigned int accelerators, char *text,
		     size_t size)
{
	const unsigned int needed =
		clients(testbed) + (unsigned int)__builtin_popcount(accelerators);

	text[0] = '\0';
	if (testbed->options.share_client_core && accelerators == 0)
		snprintf(text, size, "it uses no accelerator, so it cannot share a core");
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++) {
		if (!(accelerators & NF_USES(kind)) || testbed->engines.kinds[kind])
			continue;
		if (needed > testbed->machine.n_cores)
			snprintf(text, size,
				 "it uses %s; beside a bench that needs %u cores, this machine has "
				 "%u",
				 accelerator_names[kind], needed, testbed->machine.n_cores);
		else
			snprintf(text, size, "it uses %s, which has no engine here",
				 accelerator_names[kind]);
	}
}

/* Powers of two, which divide the flows most evenly. */
bool testbed_gives(const struct testbed *testbed, unsigned int cores)
{
	const unsigned int most = testbed->options.share_client_core ? 1 : testbed_cores(testbed);

	return cores <= most && __builtin_popcount(cores) == 1;
}

bool testbed_offers(const struct testbed *testbed, const struct bench_kind *bench)
{
	bool offered = false;
	char missing[128];

	for (unsigned int i = 0; i < bench->n_parameters; i++)
		offered |= offered_parameter(bench->parameters[i].name) != NULL;
	testbed_missing(testbed, bench->accelerators, missing, sizeof(missing));
	return offered && !missing[0];
}
