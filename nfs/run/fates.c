#include "run/fates.h"

#include <stdlib.h>

static const char *const names[FATES] = {"out", "back", "dropped", "held"};

struct of_packet {
	uint16_t out, back; /* packets that left because of it */
	uint16_t by;       /* the function that dropped or held it */
	uint8_t fate;
	uint32_t counters; /* those of `by` that changed, as bits */
};

struct fates {
	const struct chain *chain;
	uint32_t n, room;
	struct of_packet *packets;
	/* counters and counts of each function before the packet that entered last */
	uint64_t counters[CHAIN_MOST_FUNCTIONS][NF_MOST_COUNTERS];
	struct chain_counts counts[CHAIN_MOST_FUNCTIONS];
	struct {
		uint32_t number;
		uint16_t out, back;
	} earlier; /* of the packets that left since with the number of an earlier one */
};

struct fates *fates_create(const struct chain *chain)
{
	struct fates *fates = calloc(1, sizeof(*fates));

	if (!fates)
		fprintf(stderr, "no memory for the fates of packets\n");
	else
		fates->chain = chain;
	return fates;
}

void fates_destroy(struct fates *fates)
{
	if (fates)
		free(fates->packets);
	free(fates);
}

static void remember(struct fates *fates)
{
	for (unsigned int i = 0; i < chain_functions(fates->chain); i++) {
		memcpy(fates->counters[i], chain_function(fates->chain, i)->counters,
		       sizeof(fates->counters[i]));
		fates->counts[i] = chain_counts_of(fates->chain, i);
	}
}

bool fates_begin(struct fates *fates, uint32_t number)
{
	if (number >= fates->room) {
		const uint32_t room = fates->room ? 2 * fates->room : 4096;
		struct of_packet *packets = realloc(fates->packets, room * sizeof(*packets));

		if (!packets) {
			fprintf(stderr, "no memory for the fates of %u packets\n", room);
			return false;
		}
		fates->packets = packets;
		fates->room = room;
	}
	fates->packets[number] = (struct of_packet){0};
	fates->n = number + 1;
	fates->earlier.out = fates->earlier.back = 0;
	remember(fates);
	return true;
}

void fates_left(struct fates *fates, const struct rte_mbuf *packet, enum chain_end end)
{
	const uint32_t number = metadata_of_const(packet)->number;
	struct of_packet *of = &fates->packets[number];

	if (number >= fates->n)
		return;
	if (end == CHAIN_FORWARD)
		of->out++;
	else
		of->back++;
	of->fate = of->out ? FATE_OUT : FATE_BACK;
	if (number + 1 == fates->n)
		return;
	if (number != fates->earlier.number)
		fates->earlier.out = fates->earlier.back = 0;
	fates->earlier.number = number;
	if (end == CHAIN_FORWARD)
		fates->earlier.out++;
	else
		fates->earlier.back++;
}

/*
 * The last function that took the packet, and passed nothing on if `stopped`; -1 if there is none.
 */
static int last_entered(const struct fates *fates, bool stopped)
{
	int at = -1;

	for (unsigned int i = 0; i < chain_functions(fates->chain); i++) {
		const struct chain_counts now = chain_counts_of(fates->chain, i);
		const struct chain_counts *before = &fates->counts[i];

		if (now.entered > before->entered &&
		    (!stopped || now.sent + now.sent_back == before->sent + before->sent_back))
			at = (int)i;
	}
	return at;
}

/*
 * The packet completed one that an earlier packet began, as a fragment does its datagram: what left
 * is its, and the earlier one was held.
 */
static void take_over(struct fates *fates, struct of_packet *of)
{
	struct of_packet *from = &fates->packets[fates->earlier.number];

	of->out = fates->earlier.out;
	of->back = fates->earlier.back;
	of->fate = of->out ? FATE_OUT : FATE_BACK;
	from->out -= of->out;
	from->back -= of->back;
	if (from->out == 0 && from->back == 0)
		from->fate = FATE_HELD;
}

void fates_end(struct fates *fates, uint32_t number, bool held)
{
	struct of_packet *of = &fates->packets[number];
	const int at = last_entered(fates, true);

	if (of->out || of->back)
		return;
	if (at < 0 && !held && last_entered(fates, false) >= 0 &&
	    (fates->earlier.out || fates->earlier.back)) {
		take_over(fates, of);
		return;
	}
	of->fate = held ? FATE_HELD : FATE_DROPPED;
	of->by = at < 0 ? UINT16_MAX : (uint16_t)at;
	for (unsigned int i = 0; at >= 0 && i < NF_MOST_COUNTERS; i++)
		if (chain_function(fates->chain, (unsigned int)at)->counters[i] !=
		    fates->counters[at][i])
			of->counters |= 1u << i;
}

static void print_why(const struct fates *fates, const struct of_packet *of, FILE *stream)
{
	const struct nf_kind *kind;
	const char *before = "";

	if (of->by == UINT16_MAX) {
		fprintf(stream, ", \"by\": null, \"why\": [\"no service path\"]");
		return;
	}
	kind = chain_function(fates->chain, of->by)->kind;
	fprintf(stream, ", \"by\": \"%s\", \"why\": [", chain_function_name(fates->chain, of->by));
	for (unsigned int i = 0; i < kind->n_counters; i++) {
		if (!(of->counters & 1u << i))
			continue;
		fprintf(stream, "%s\"%s\"", before, kind->counters[i].name);
		before = ", ";
	}
	fputc(']', stream);
}

bool fates_print(const struct fates *fates, FILE *stream)
{
	for (uint32_t i = 0; i < fates->n; i++) {
		const struct of_packet *of = &fates->packets[i];

		fprintf(stream, "{\"packet\": %u, \"fate\": \"%s\", \"out\": %u, \"back\": %u", i,
			names[of->fate], of->out, of->back);
		if (of->fate == FATE_DROPPED || of->fate == FATE_HELD)
			print_why(fates, of, stream);
		fputs("}\n", stream);
	}
	return !ferror(stream);
}
