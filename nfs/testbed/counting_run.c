#include "testbed/counting_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "accelerators/accelerator.h"
#include "testbed/request.h"
#include "testbed/worker.h"
#include "testbed/workload.h"

#define BURST_US 10 /* a clock of its own: a simulator's time is not the packets' */

static int parse(const char *text, struct load *load)
{
	struct faults faults = {0};
	json_error_t error;
	json_t *json = json_loads(text, 0, &error);

	if (json)
		request_load(json, load, &faults);
	else
		fault(&faults, "%s", error.text);
	json_decref(json);
	if (faults.n > 0)
		fprintf(stderr, "testbed: --count: %s\n", faults.text);
	return faults.n > 0 ? -EINVAL : 0;
}

static struct workload *create(const struct load *load)
{
	struct accelerator *accelerators[ACCELERATOR_KINDS] = {NULL};

	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++)
		if (load_accelerators(load) & NF_USES(kind))
			accelerators[kind] = accelerator_create((enum accelerator_kind)kind);
	return workload_create(load, accelerators, 0);
}

static uint64_t do_units(struct workload *workload, uint64_t units)
{
	static uint64_t now_us = 1;
	const uint64_t before = workload_done(workload);

	while (workload_done(workload) - before < units)
		workload_step(workload, now_us += BURST_US);
	return workload_done(workload) - before;
}

/* What has been done until here is written by a process that does nothing else. */
static int mark(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(EXIT_SUCCESS);
	if (child < 0 || waitpid(child, NULL, 0) < 0) {
		fprintf(stderr, "testbed: cannot fork: %s\n", strerror(errno));
		return -errno;
	}
	return 0;
}

static int forget_pages(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");

	if (!file || fputs("1", file) < 0 || fclose(file) != 0) {
		fprintf(stderr, "testbed: /proc/self/clear_refs: %s\n", strerror(errno));
		return -errno;
	}
	return 0;
}

/* Bytes of the pages that were referred to since. */
static unsigned long referenced(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	unsigned long kilobytes = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Referenced: %lu kB", &kilobytes) == 1)
			break;
	if (file)
		fclose(file);
	return kilobytes * 1024;
}

static int count(const struct options *options, const struct load *load, struct workload *workload,
		 FILE *out)
{
	uint64_t done;

	do_units(workload, load->nf ? load->traffic.flows + options->units / 4 : options->units);
	if ((options->count_pages ? forget_pages() : mark()) < 0)
		return EXIT_FAILURE;
	done = do_units(workload, options->units);
	fprintf(out, "units %lu\n", (unsigned long)done);
	if (options->count_pages)
		fprintf(out, "pages %lu\n", referenced());
	fflush(out);
	return EXIT_SUCCESS;
}

int counting_run(const struct options *options, FILE *out)
{
	struct machine machine;
	struct workers workers;
	struct load load;
	struct workload *workload;

	if (parse(options->count, &load) < 0 || machine_look(&machine, options->cores) < 0)
		return EXIT_FAILURE;
	machine.n_cores = 1;
	if (workers_start(&workers, &machine, options->memory_mb, false) < 0)
		return EXIT_FAILURE;
	workload = create(&load);
	if (!workload)
		return EXIT_FAILURE;
	/* nothing is taken apart: it would be counted, too */
	_exit(count(options, &load, workload, out));
}
