#include "cycles/chains.h"

#include <stdio.h>
#include <string.h>

#include "core/random.h"
#include "cycles/runner.h"

/* Runners that take turns on the same traffic. */

#define TURNS_MOST 64

struct turns {
	struct rte_mempool *spare;
	struct traffic *traffic;
	uint32_t flows;
	uint64_t random; /* of the order */
	unsigned int n;
	struct runner runners[TURNS_MOST];
};

#define INSTANCES 3 /* their memory lies elsewhere in the caches */

static bool is_same(const struct runner *one, const struct runner *other)
{
	return one->parsed == other->parsed &&
	       memcmp(one->kinds, other->kinds, sizeof(one->kinds)) == 0 &&
	       memcmp(one->makers, other->makers, sizeof(one->makers)) == 0;
}

static bool make(struct turns *turns, struct runner *runner)
{
	if (!runner_create(runner, turns->spare))
		return false;
	runner_warm(runner, turns->traffic, turns->flows);
	return true;
}

/* The runner of these functions and packets, made unless there is one; NULL after printing why. */
static const struct runner *turns_obtain(struct turns *turns, const struct runner *wanted)
{
	for (unsigned int i = 0; i < turns->n; i++)
		if (is_same(&turns->runners[i], wanted))
			return &turns->runners[i];
	if (turns->n == TURNS_MOST) {
		fprintf(stderr, "cycles: more than %d chains and functions\n", TURNS_MOST);
		return NULL;
	}
	turns->runners[turns->n] = *wanted;
	return make(turns, &turns->runners[turns->n]) ? &turns->runners[turns->n++] : NULL;
}

/*
 * A round of each, in another order every time: one that lowers the clock, as wide vector
 * instructions do, slows down whichever comes next.
 */
static void take_turns(struct turns *turns, unsigned int round)
{
	struct runner *order[TURNS_MOST];

	for (unsigned int i = 0; i < turns->n; i++) {
		const uint32_t at = random_below(&turns->random, i + 1);

		order[i] = order[at];
		order[at] = &turns->runners[i];
	}
	for (unsigned int i = 0; i < turns->n; i++)
		runner_round(order[i], turns->traffic, round);
}

/* Destroy the instances; what was measured stays. */
static void turns_end(struct turns *turns)
{
	for (unsigned int i = 0; i < turns->n; i++)
		runner_destroy(&turns->runners[i]);
}

/* Go on with other instances. */
static bool renew(struct turns *turns)
{
	turns_end(turns);
	for (unsigned int i = 0; i < turns->n; i++)
		if (!make(turns, &turns->runners[i]))
			return false;
	return true;
}

/* Measure all batches, with new instances after some of them. False after printing why. */
static bool turns_run(struct turns *turns)
{
	for (unsigned int batch = 0; batch < RUNNER_BATCHES; batch++) {
		if (batch > 0 && batch % (RUNNER_BATCHES / INSTANCES) == 0 && !renew(turns))
			return false;
		for (unsigned int round = 0; round < RUNNER_ROUNDS; round++)
			take_turns(turns, round);
		for (unsigned int i = 0; i < turns->n; i++)
			runner_batch(&turns->runners[i], batch);
	}
	return true;
}

/* The last two are Lemur's chains 3 and 5 (Yen et al., 2020, table 2). */
static const char *const usual[] = {
	"Null,Null,Null,Null",
	"ACL,NAT,Null",
	"ACL,Limiter,LB,Monitor",
	"ACL,Tunnel,Detunnel,IPRouter",
	"Dedup,ACL,Limiter,LB,IPRouter",
	"ACL,UrlFilter,FastEncrypt,IPRouter",
};

/* A chain, and what its prediction needs. */
struct predicted {
	const struct runner *chain;
	const struct runner *null, *nulls; /* one Null, and many */
	/* each function, and Null with the same packets */
	const struct runner *alone[RUNNER_MOST], *null_alone[RUNNER_MOST];
};

static bool find_functions(const char *chain, struct runner *runner)
{
	char names[256], *rest = names, *name;

	if (snprintf(names, sizeof(names), "%s", chain) >= (int)sizeof(names)) {
		fprintf(stderr, "cycles: %s: too long\n", chain);
		return false;
	}
	while ((name = strsep(&rest, ","))) {
		const struct nf_kind *kind = nf_find(name);

		if (!kind) {
			fprintf(stderr, "cycles: %s: no function '%s'\n", chain, name);
			fprintf(stderr, "hint: nf-run --list lists them\n");
			return false;
		}
		if (runner->n == RUNNER_MOST) {
			fprintf(stderr, "cycles: %s: more than %d functions\n", chain, RUNNER_MOST);
			return false;
		}
		runner->kinds[runner->n++] = kind;
	}
	return true;
}

bool chains_knows(const char *chain)
{
	struct runner runner = {0};

	return find_functions(chain, &runner);
}

/* The runner of a function alone, with packets as in `wanted`. */
static const struct runner *obtain_alone(struct turns *turns, struct runner wanted,
					 const struct nf_kind *kind)
{
	wanted.kinds[0] = kind;
	wanted.n = 1;
	return turns_obtain(turns, &wanted);
}

/* Each function alone, with packets as those before it leave them. */
static bool prepare_alone(struct turns *turns, struct predicted *predicted)
{
	struct runner packets = {0};

	for (unsigned int i = 0; i < predicted->chain->n; i++) {
		const struct nf_kind *kind = predicted->chain->kinds[i];

		predicted->alone[i] = obtain_alone(turns, packets, kind);
		predicted->null_alone[i] = obtain_alone(turns, packets, nf_find("Null"));
		if (!predicted->alone[i] || !predicted->null_alone[i])
			return false;
		packets.parsed = predicted->alone[i]->effect.parsed;
		if (predicted->alone[i]->effect.changed)
			packets.makers[packets.n_makers++] = kind;
	}
	return true;
}

static bool prepare(struct turns *turns, const char *name, struct predicted *predicted)
{
	const struct nf_kind *null = nf_find("Null");
	struct runner chain = {0}, nulls = {.n = RUNNER_MOST};

	if (!find_functions(name, &chain))
		return false;
	for (unsigned int i = 0; i < nulls.n; i++)
		nulls.kinds[i] = null;
	predicted->chain = turns_obtain(turns, &chain);
	predicted->null = obtain_alone(turns, (struct runner){0}, null);
	predicted->nulls = turns_obtain(turns, &nulls);
	return predicted->chain && predicted->null && predicted->nulls &&
	       prepare_alone(turns, predicted);
}

/* A pass through the chain's runtime and Null. */
static double pass(const struct predicted *predicted, unsigned int batch)
{
	return (predicted->nulls->medians[batch] - predicted->null->medians[batch]) /
	       (RUNNER_MOST - 1);
}

/* What a function adds to a chain that all packets pass. */
static double charge(const struct predicted *predicted, unsigned int at, unsigned int batch)
{
	return predicted->alone[at]->medians[batch] - predicted->null_alone[at]->medians[batch] +
	       pass(predicted, batch);
}

static double source(const struct predicted *predicted, unsigned int batch)
{
	return predicted->null->medians[batch] - pass(predicted, batch);
}

static double prediction(const struct predicted *predicted, unsigned int batch)
{
	double cycles = source(predicted, batch);

	for (unsigned int i = 0; i < predicted->chain->n; i++)
		cycles += predicted->chain->visits[i] * charge(predicted, i, batch);
	return cycles;
}

static double middle(double *batches)
{
	return quantile(batches, RUNNER_BATCHES, 0.5);
}

/* The prediction as a sum. */
static void print_sum(const struct predicted *predicted)
{
	double batches[RUNNER_BATCHES];

	for (unsigned int batch = 0; batch < RUNNER_BATCHES; batch++)
		batches[batch] = source(predicted, batch);
	printf("\"source %.1f", middle(batches));
	for (unsigned int i = 0; i < predicted->chain->n; i++) {
		for (unsigned int batch = 0; batch < RUNNER_BATCHES; batch++)
			batches[batch] = charge(predicted, i, batch);
		printf(" + %s%s %.3f * %.1f", predicted->chain->kinds[i]->name,
		       predicted->alone[i]->parsed ? " (parsed)" : "", predicted->chain->visits[i],
		       middle(batches));
	}
	printf("\"\n");
}

/* Print median and quartiles. */
static void print_spread(double *batches, int digits)
{
	printf("%.*f,%.*f,%.*f,", digits, middle(batches), digits,
	       quantile(batches, RUNNER_BATCHES, 0.25), digits,
	       quantile(batches, RUNNER_BATCHES, 0.75));
}

static void print(const char *name, const struct predicted *predicted, uint32_t flows)
{
	double measured[RUNNER_BATCHES], predictions[RUNNER_BATCHES], ratios[RUNNER_BATCHES];

	for (unsigned int i = 0; i < RUNNER_BATCHES; i++) {
		measured[i] = predicted->chain->medians[i];
		predictions[i] = prediction(predicted, i);
		ratios[i] = measured[i] / predictions[i];
	}
	printf("\"%s\",%u,", name, flows);
	print_spread(measured, 1);
	print_spread(predictions, 1);
	print_spread(ratios, 3);
	print_sum(predicted);
	fflush(stdout);
}

static bool measure(const char *const *chains, unsigned int n, struct turns *turns)
{
	struct predicted predicted[CHAINS_MOST];

	for (unsigned int i = 0; i < n; i++)
		if (!prepare(turns, chains[i], &predicted[i]))
			return false;
	if (!turns_run(turns))
		return false;
	for (unsigned int i = 0; i < n; i++)
		print(chains[i], &predicted[i], turns->flows);
	return true;
}

bool chains_measure(const char *const *chains, unsigned int n, const struct load *load,
		    struct rte_mempool *spare)
{
	static struct turns turns;
	bool measured = true;

	printf("chain,flows,cycles_per_packet,cycles_q1,cycles_q3,predicted_cycles,predicted_q1,"
	       "predicted_q3,ratio,ratio_q1,ratio_q3,predicted_from\n");
	for (unsigned int i = 0; i < load->n_flows; i++) {
		const struct traffic_profile profile = profile_of(load, i);

		turns = (struct turns){.spare = spare,
				       .traffic = traffic_create(&profile, 1),
				       .flows = profile.flows,
				       .random = 1};
		measured &= turns.traffic &&
			    measure(n ? chains : usual, n ? n : RTE_DIM(usual), &turns);
		turns_end(&turns);
		traffic_destroy(turns.traffic);
	}
	return measured;
}
