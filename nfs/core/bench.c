#include "core/bench.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"

static struct bench_kind *kinds;

void bench_register(struct bench_kind *kind)
{
	struct bench_kind **place = &kinds;

	while (*place && strcmp((*place)->name, kind->name) < 0)
		place = &(*place)->next;
	kind->next = *place;
	*place = kind;
}

const struct bench_kind *bench_first(void)
{
	return kinds;
}

const struct bench_kind *bench_find(const char *name)
{
	const struct bench_kind *kind = kinds;

	while (kind && strcmp(kind->name, name) != 0)
		kind = kind->next;
	return kind;
}

static bool configure(struct bench *bench, struct accelerator *const *accelerators)
{
	for (int i = 0; i < ACCELERATOR_KINDS; i++) {
		if (!(bench->kind->accelerators & NF_USES(i)))
			continue;
		if (!accelerators || !accelerators[i]) {
			fprintf(stderr, "%s: needs an accelerator of kind %d\n", bench->kind->name,
				i);
			return false;
		}
		bench->accelerators[i] = accelerators[i];
	}
	return true;
}

struct bench *bench_create(const char *name, struct accelerator *const *accelerators,
			   const struct nf_setting *settings, unsigned int n_settings)
{
	const struct bench_kind *kind = bench_find(name);
	struct bench *bench;

	if (!kind) {
		fprintf(stderr, "%s: unknown bench\n", name);
		return NULL;
	}
	bench = nf_zalloc(sizeof(*bench));
	if (!bench) {
		fprintf(stderr, "%s: no memory for an instance\n", name);
		return NULL;
	}
	bench->kind = kind;
	if (!configure(bench, accelerators) ||
	    nf_apply_settings(name, kind->parameters, kind->n_parameters, settings, n_settings,
			      bench->settings) < 0 ||
	    (kind->create && kind->create(bench) < 0)) {
		nf_free(bench);
		return NULL;
	}
	return bench;
}

void bench_destroy(struct bench *bench)
{
	if (!bench)
		return;
	if (bench->kind->destroy)
		bench->kind->destroy(bench);
	nf_free(bench);
}
