#include "core/nf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/memory.h"

static struct nf_kind *kinds;

void nf_register(struct nf_kind *kind)
{
	struct nf_kind **place = &kinds;

	while (*place && strcmp((*place)->name, kind->name) < 0)
		place = &(*place)->next;
	if (*place && strcmp((*place)->name, kind->name) == 0) {
		fprintf(stderr, "%s: two network functions have this name\n", kind->name);
		abort();
	}
	kind->next = *place;
	*place = kind;
}

const struct nf_kind *nf_first(void)
{
	return kinds;
}

const struct nf_kind *nf_find(const char *name)
{
	const struct nf_kind *kind = kinds;

	while (kind && strcmp(kind->name, name) != 0)
		kind = kind->next;
	return kind;
}

static int configure(struct nf *nf, const struct nf_config *config)
{
	const struct nf_kind *kind = nf->kind;
	unsigned int supported = kind->executions ? kind->executions : NF_RUN_TO_COMPLETION;

	nf->execution = config->execution ? config->execution : kind->default_execution;
	if (nf->execution == 0)
		nf->execution = supported & -supported;
	if (!(nf->execution & supported)) {
		fprintf(stderr, "%s: cannot execute as %s\n", kind->name,
			nf->execution == NF_PIPELINE ? "a pipeline" : "run to completion");
		return -EINVAL;
	}
	nf->spare = config->spare;
	nf->socket = SOCKET_ID_ANY;
	for (int i = 0; i < ACCELERATOR_KINDS; i++) {
		if (!(kind->accelerators & NF_USES(i)))
			continue;
		if (!config->accelerators[i]) {
			fprintf(stderr, "%s: needs an accelerator of kind %d\n", kind->name, i);
			return -ENODEV;
		}
		nf->accelerators[i] = config->accelerators[i];
	}
	return 0;
}

static void free_instance(struct nf *nf)
{
	for (unsigned int i = 0; i < nf->kind->n_parameters; i++)
		free(nf->texts[i]);
	nf_free(nf->rule_counts);
	if (nf->kind->state_bytes > 0)
		nf_free(nf->state);
	nf_free(nf);
}

static int make_state(struct nf *nf)
{
	const struct nf_kind *kind = nf->kind;
	int result;

	if (kind->state_bytes > 0) {
		nf->state = nf_zalloc_for(kind->name, kind->state_bytes);
		if (!nf->state)
			return -ENOMEM;
	}
	result = kind->create ? kind->create(nf) : 0;
	if (result < 0 && kind->state_bytes > 0 && kind->destroy)
		kind->destroy(nf);
	return result;
}

/* The texts are the instance's own: who set them may free them. */
static int copy_texts(struct nf *nf, const struct nf_setting *settings, unsigned int n_settings)
{
	const char *texts[NF_MOST_PARAMETERS];

	nf_apply_texts(nf->kind->parameters, nf->kind->n_parameters, settings, n_settings, texts);
	for (unsigned int i = 0; i < nf->kind->n_parameters; i++) {
		if (!texts[i])
			continue;
		nf->texts[i] = strdup(texts[i]);
		if (!nf->texts[i])
			return -ENOMEM;
	}
	return 0;
}

/* Whether a text is `pass`, or empty: 1 or 0, or -EINVAL after printing that it is wrong. */
static int passes(const struct nf *nf, const char *parameter, const char *text)
{
	if (!*text || strcmp(text, "pass") == 0 || strcmp(text, "drop") == 0)
		return *text != 'd';
	fprintf(stderr, "%s: %s: %s: neither %spass nor drop\nhint: %s=drop\n", nf->kind->name,
		parameter, text, strcmp(parameter, "ipv6") == 0 ? "read, " : "", parameter);
	return -EINVAL;
}

/* What becomes of frames that are not understood, and of IPv6: see NF_OTHER_PARAMETERS. */
static int choose_others(struct nf *nf)
{
	int unknown = 1, arp = 1, ipv6 = 1;

	for (unsigned int i = 0; i < nf->kind->n_parameters; i++) {
		const char *name = nf->kind->parameters[i].name;

		if (nf->texts[i] && strcmp(name, "unknown") == 0)
			unknown = passes(nf, name, nf->texts[i]);
		if (nf->texts[i] && strcmp(name, "arp") == 0)
			arp = passes(nf, name, nf->texts[i]);
		if (nf->texts[i] && strcmp(name, "ipv6") == 0) {
			nf->leaves_ipv6_unread = strcmp(nf->texts[i], "read") != 0;
			if (nf->leaves_ipv6_unread)
				ipv6 = passes(nf, name, nf->texts[i]);
		}
	}
	nf->passes_ipv6 = ipv6 == 1;
	nf->passes_unknown = unknown == 1;
	nf->passes_arp = arp == 1;
	return RTE_MIN(RTE_MIN(unknown, arp), ipv6);
}

struct nf *nf_create(const struct nf_config *config, const struct nf_setting *settings,
		     unsigned int n_settings)
{
	const struct nf_kind *kind = nf_find(config->name);
	struct nf *nf;

	if (!kind) {
		fprintf(stderr, "%s: unknown network function\n", config->name);
		return NULL;
	}
	nf = nf_zalloc(sizeof(*nf));
	if (!nf) {
		fprintf(stderr, "%s: no memory for an instance\n", kind->name);
		return NULL;
	}
	nf->kind = kind;
	if (config->begins_at_random &&
	    getrandom(&nf->first, sizeof(nf->first), 0) != sizeof(nf->first)) {
		fprintf(stderr, "%s: no random numbers: %s\n", kind->name, strerror(errno));
		free_instance(nf);
		return NULL;
	}
	if (metadata_register() < 0 || configure(nf, config) < 0 ||
	    nf_apply_settings(kind->name, kind->parameters, kind->n_parameters, settings,
			      n_settings, nf->settings) < 0 ||
	    copy_texts(nf, settings, n_settings) < 0 || choose_others(nf) < 0 ||
	    make_state(nf) < 0) {
		free_instance(nf);
		return NULL;
	}
	return nf;
}

bool nf_count_rules(struct nf *nf)
{
	if (nf->n_rules > 0 && !nf->rule_counts)
		nf->rule_counts =
			nf_zalloc_for(nf->kind->name, nf->n_rules * sizeof(*nf->rule_counts));
	return nf->n_rules == 0 || nf->rule_counts;
}

void nf_destroy(struct nf *nf)
{
	if (!nf)
		return;
	if (nf->kind->destroy)
		nf->kind->destroy(nf);
	free_instance(nf);
}

unsigned int nf_branches(const struct nf *nf)
{
	return nf->kind->branches ? nf->kind->branches(nf) : 0;
}

void nf_poll(struct nf *nf, struct nf_out *out)
{
	if (nf->kind->poll)
		nf->kind->poll(nf, out);
}

void nf_flush(struct nf *nf, struct nf_out *out)
{
	if (nf->kind->flush)
		nf->kind->flush(nf, out);
}

void nf_other(struct nf *nf, struct rte_mbuf *packet, enum packet_type type, unsigned int counter,
	      struct nf_out *out)
{
	if (type == PACKET_MALFORMED) {
		nf_drop(nf, packet, counter + 2);
	} else if (type == PACKET_ARP ? nf->passes_arp : nf->passes_unknown) {
		nf->counters[counter]++;
		nf_send(out, packet);
	} else {
		nf_drop(nf, packet, counter + 1);
	}
}

void nf_out_free(struct nf_out *out)
{
	rte_pktmbuf_free_bulk(out->packets, out->n);
	out->n = 0;
}
