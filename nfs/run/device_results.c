/*
 * The results of a device as those of an accelerator for regular expressions: functions that scan
 * keep their flows, counters and verdicts in C. A packet without a result is scanned in software,
 * if there is an engine.
 */
#include <errno.h>
#include <stdlib.h>

#include "accelerators/backend.h"
#include "gpu/kernels/nids.h"
#include "run/device.h"

/* The engine in software; created when it is needed, or with the rules of a file. */
struct results {
	const struct accelerator_backend *backend;
	void *state;
};

static struct accelerator_backend results_backend;

/* The best library for regular expressions; NULL if the build has none. */
static const struct accelerator_backend *in_software(void)
{
	const struct accelerator_backend *backend = backend_first();

	while (backend && (backend == &results_backend || backend->poll ||
			   backend->kind != ACCELERATOR_REGEX))
		backend = backend->next;
	return backend;
}

static void *create(void)
{
	struct results *results = calloc(1, sizeof(*results));

	if (results)
		results->backend = in_software();
	return results;
}

static void *create_rules(const struct rule_set *set)
{
	struct results *results = create();

	if (!results)
		return NULL;
	results->state = results->backend->create_rules(set);
	if (results->state)
		return results;
	free(results);
	return NULL;
}

static enum backend_status scan(struct results *results, struct accelerator_job *job)
{
	if (results->backend && !results->state)
		results->state = results->backend->create();
	if (results->state)
		return results->backend->submit(results->state, job);
	job->status = -ENOTSUP;
	return BACKEND_DONE;
}

static enum backend_status submit(void *state, struct accelerator_job *job)
{
	const struct gpu_slot *result = device_result();

	backend_begin(job);
	if (!result)
		return scan(state, job);
	job->status = 0;
	job->produced = NIDS_MATCHES(result->detail);
	job->rule = job->produced ? (int32_t)NIDS_RULE(result->detail) : -1;
	job->classes = NIDS_CLASSES(result->detail);
	return BACKEND_DONE;
}

static void destroy(void *state)
{
	struct results *results = state;

	if (results->state)
		results->backend->destroy(results->state);
	free(results);
}

static struct accelerator_backend results_backend = {
	.name = "device",
	.help = "results of a kernel",
	.kind = ACCELERATOR_REGEX,
	.preference = 1000,
	.create = create,
	.submit = submit,
	.destroy = destroy,
};

void device_results_register(void)
{
	const struct accelerator_backend *software = in_software();

	if (software && software->create_rules) {
		results_backend.create_rules = create_rules;
		results_backend.fault = software->fault;
	}
	backend_register(&results_backend);
}
