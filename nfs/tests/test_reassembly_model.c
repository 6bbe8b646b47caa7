#include "tests/reassembly_rig.h"

#define DATAGRAMS 3
#define LONGEST 128
#define TRUE_END 75 /* of fragments that are as they should be */

/* What a table should hold of a datagram, byte by byte. */
static struct model {
	bool begun;
	uint64_t begun_us;
	uint32_t end, more_behind;
	uint32_t owners[LONGEST]; /* the fragment that has the byte; 0: none */
	uint8_t bytes[LONGEST];
} models[DATAGRAMS];

static uint64_t expected[REASSEMBLY_COUNTERS];

/* A fragment to offer. */
struct offer {
	uint32_t begin, end;
	uint32_t number; /* from 1 */
	bool last;
	uint8_t bytes[LONGEST];
};

/* Whether a fragment has any of the bytes from `begin` to `end`. */
static bool has_bytes(const struct model *model, uint32_t owner, uint32_t begin, uint32_t end)
{
	for (uint32_t at = begin; at < end; at++)
		if (model->owners[at] == owner)
			return true;
	return false;
}

static uint32_t fragments_in(const struct model *model)
{
	uint32_t n = 0;

	for (uint32_t at = 0; at < LONGEST; at++)
		n += model->owners[at] != 0 && !has_bytes(model, model->owners[at], 0, at);
	return n;
}

static void forget(struct model *model, int counter)
{
	expected[counter] += fragments_in(model);
	*model = (struct model){0};
}

static bool contradicts(const struct model *model, const struct offer *offer)
{
	const uint32_t more_behind =
		offer->last ? model->more_behind : RTE_MAX(model->more_behind, offer->end);
	const uint32_t end = offer->last ? offer->end : model->end;

	if (end != 0 && (more_behind >= end || (model->end != 0 && model->end != end)))
		return true;
	for (uint32_t at = offer->begin; at < offer->end; at++)
		if (model->owners[at] != 0 && model->bytes[at] != offer->bytes[at])
			return true;
	return false;
}

/* Fragments that are whole within this one, and begin behind its start, are replaced by it. */
static void replace_inner(struct model *model, const struct offer *offer)
{
	for (uint32_t at = offer->begin + 1; at < offer->end; at++) {
		const uint32_t owner = model->owners[at];

		if (owner == 0 || owner == offer->number ||
		    has_bytes(model, owner, 0, offer->begin + 1) ||
		    has_bytes(model, owner, offer->end, LONGEST))
			continue;
		expected[REASSEMBLY_DUPLICATES]++;
		for (uint32_t other = at; other < offer->end; other++)
			if (model->owners[other] == owner)
				model->owners[other] = 0;
	}
}

/* Offer a fragment to the model; returns the length of the datagram that it completes, or 0. */
static uint32_t offer_to_model(struct model *model, const struct offer *offer, uint64_t now_us)
{
	uint32_t missing = 0;

	if (!model->begun)
		*model = (struct model){.begun = true, .begun_us = now_us};
	if (contradicts(model, offer)) {
		expected[REASSEMBLY_OVERLAPPING]++;
		forget(model, REASSEMBLY_OVERLAPPING);
		return 0;
	}
	for (uint32_t at = offer->begin; at < offer->end; at++)
		missing += model->owners[at] == 0;
	if (missing == 0) {
		expected[REASSEMBLY_DUPLICATES]++;
		return 0;
	}
	replace_inner(model, offer);
	for (uint32_t at = offer->begin; at < offer->end; at++) {
		model->bytes[at] = offer->bytes[at];
		if (model->owners[at] == 0)
			model->owners[at] = offer->number;
	}
	model->end = offer->last ? offer->end : model->end;
	model->more_behind =
		offer->last ? model->more_behind : RTE_MAX(model->more_behind, offer->end);
	for (uint32_t at = 0; at < model->end; at++)
		if (model->owners[at] == 0)
			return 0;
	return model->end;
}

/* Mostly a fragment of the one datagram; else one with another byte, or another end. */
static struct offer random_offer(uint32_t number, uint64_t *random)
{
	struct offer offer = {.number = number, .begin = 8 * random_below(random, 10)};

	offer.end = offer.begin + 8 * (1 + random_below(random, 5));
	offer.last = offer.end >= TRUE_END;
	if (offer.last)
		offer.end = TRUE_END;
	if (random_below(random, 40) == 0) {
		offer.last = !offer.last;
		offer.end = RTE_ALIGN_CEIL(offer.end, 8u) - (offer.last ? 3 : 0);
	}
	for (uint32_t at = 0; at < LONGEST; at++)
		offer.bytes[at] = (uint8_t)(at * 5);
	if (random_below(random, 40) == 0)
		offer.bytes[offer.begin + random_below(random, offer.end - offer.begin)]++;
	return offer;
}

/* Fragments of some datagrams in random order, overlapping, contradicting, timing out. */
TABLE_TEST(random_fragments_are_handled_like_in_the_model)
{
	const struct reassembly_limits limits = reassembly_limits(DATAGRAMS, 1);
	uint64_t random = 1, now_us = 1;
	uint32_t completed = 0;

	make_table(&limits);
	for (uint32_t i = 1; i <= 60000; i++) {
		const uint16_t id = random_below(&random, DATAGRAMS);
		const struct offer offer = random_offer(i, &random);
		struct rte_mbuf *fragment =
			fragment_of(rig, id, offer.begin, offer.bytes + offer.begin,
				    offer.end - offer.begin, offer.last ? 0 : LATER);
		struct reassembled whole;
		uint32_t length, held = 0;

		if (random_below(&random, 3) == 0)
			fragment = in_two(rig, fragment, 34 + random_below(&random, 3));
		now_us += random_below(&random, 60000);
		reassembly_expire(table, now_us);
		for (int other = 0; other < DATAGRAMS; other++)
			if (models[other].begun && now_us - models[other].begun_us > SECOND)
				forget(&models[other], REASSEMBLY_UNASSEMBLED);
		length = offer_to_model(&models[id], &offer, now_us);
		assert_int_equal(offer_fragment(fragment, now_us, &whole), length != 0);
		if (length != 0) {
			assert_whole(&whole, models[id].bytes, length);
			models[id] = (struct model){0};
			completed++;
		}
		assert_memory_equal(counted, expected, sizeof(counted));
		for (int other = 0; other < DATAGRAMS; other++)
			held += fragments_in(&models[other]);
		assert_in_range(rte_mempool_in_use_count(rig->pool), held, 2 * held);
	}
	assert_true(completed > 1000 && counted[REASSEMBLY_OVERLAPPING] > 1000 &&
		    counted[REASSEMBLY_DUPLICATES] > 1000 && counted[REASSEMBLY_UNASSEMBLED] > 100);
}
