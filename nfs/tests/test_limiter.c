#include <math.h>

#include "core/random.h"
#include "tests/hostile.h"

#define MS_US 1000
#define WINDOW_MS 1000
#define RUN_MS 1500

/* Packets of one kind that arrive in bursts. */
struct arrivals {
	uint32_t least, most; /* length of frames without checksum */
	uint32_t burst;       /* packets */
	double gap_us;        /* on the mean between bursts */
	uint32_t silence_us;  /* each `period_us`, in which nothing arrives */
	uint32_t period_us;   /* 0: no silence */
};

struct arriving {
	const struct arrivals *arrivals;
	struct rig *rig;
	struct rte_mbuf *packet; /* offered again and again */
	uint64_t random;
	double now_us;
};

static struct arriving arriving_of(struct rig *rig, const struct arrivals *arrivals, uint64_t seed)
{
	struct arriving arriving = {
		.arrivals = arrivals, .rig = rig, .random = seed, .now_us = 1000};

	arriving.packet = packet_of(rig, "", 0);
	return arriving;
}

/* Offer a burst; the function's counters then say what passed. */
static void offer_next(struct arriving *arriving)
{
	const struct arrivals *arrivals = arriving->arrivals;
	struct rte_mbuf *burst[NF_BURST];
	struct rig *rig = arriving->rig;

	/* all of a burst have one length: they are one buffer */
	arriving->packet->pkt_len = arriving->packet->data_len =
		(uint16_t)(arrivals->least +
			   random_below(&arriving->random, arrivals->most - arrivals->least + 1));
	rte_mbuf_refcnt_update(arriving->packet, (int16_t)arrivals->burst);
	for (uint32_t i = 0; i < arrivals->burst; i++)
		burst[i] = arriving->packet;
	rig->nf->now_us = (uint64_t)arriving->now_us;
	nf_process(rig->nf, burst, (uint16_t)arrivals->burst, &rig->out);
	nf_out_free(&rig->out);
	arriving->now_us +=
		arrivals->gap_us * 2 * random_below(&arriving->random, 1 << 20) / (1 << 20);
	if (arrivals->period_us > 0 &&
	    (uint64_t)arriving->now_us % arrivals->period_us < arrivals->silence_us)
		arriving->now_us += arrivals->silence_us;
}

/* The least and most of a counter that grows in any second, to a millisecond. */
static void extremes(struct arriving *arriving, const char *counter, double *least, double *most)
{
	static uint64_t at[RUN_MS + 1];

	for (int ms = 0; ms <= RUN_MS; ms++) {
		while (arriving->now_us < ms * MS_US + 2000)
			offer_next(arriving);
		at[ms] = rig_count(arriving->rig, counter);
	}
	*least = INFINITY;
	*most = 0;
	for (int ms = WINDOW_MS; ms <= RUN_MS; ms++) {
		*least = RTE_MIN(*least, (double)(at[ms] - at[ms - WINDOW_MS]));
		*most = RTE_MAX(*most, (double)(at[ms] - at[ms - WINDOW_MS]));
	}
}

static void expect_rate(struct rig *rig, const struct nf_setting *setting, double per_s,
			const char *counter, const struct arrivals *arrivals, uint64_t seed)
{
	struct nf_setting settings[] = {{"rate_mbps", 0}, *setting};
	struct arriving arriving;
	double least, most;

	rig_make(rig, "Limiter", settings, 2);
	arriving = arriving_of(rig, arrivals, seed);
	extremes(&arriving, counter, &least, &most);
	rte_pktmbuf_free(arriving.packet);
	if (least < 0.99 * per_s || most > 1.01 * per_s)
		fail_msg("%s %g, frames of %u to %u, bursts of %u: %.2f to %.2f %% of the rate",
			 setting->name, setting->value, arrivals->least, arrivals->most,
			 arrivals->burst, 100 * least / per_s, 100 * most / per_s);
	assert_true(rig_count(rig, "dropped") > 0);
}

static const struct {
	uint32_t least, most;
} sizes[] = {{60, 60}, {60, 1514}, {508, 508}, {1514, 1514}, {1, 2000}};

/* Twice the rate, in bursts of `burst`. */
static struct arrivals twice(double bytes_per_us, unsigned int size, uint32_t burst)
{
	const double mean = (sizes[size].least + sizes[size].most) / 2.0 + 4;

	return (struct arrivals){.least = sizes[size].least,
				 .most = sizes[size].most,
				 .burst = burst,
				 .gap_us = burst * mean / (2 * bytes_per_us)};
}

/* In any second the bytes that pass are within 1 % of the rate, at any rate, size and burst. */
RIG_TEST(bytes_are_within_a_percent_of_the_rate)
{
	static const double rates[] = {3, 10, 47.5, 100, 999};
	static const uint32_t bursts[] = {1, 7, 32};
	uint64_t seed = 0;

	for (unsigned int rate = 0; rate < RTE_DIM(rates); rate++)
		for (unsigned int size = 0; size < RTE_DIM(sizes); size++)
			for (unsigned int burst = 0; burst < RTE_DIM(bursts); burst++) {
				const struct nf_setting setting = {"rate_mbps", rates[rate]};
				const struct arrivals arrivals =
					twice(rates[rate] / 8, size, bursts[burst]);

				/* a burst must not take longer to pass than the bucket to fill */
				if (arrivals.gap_us > 1000 || (rates[rate] > 1000 && size == 0))
					continue;
				expect_rate(rig, &setting, 1e6 * rates[rate] / 8, "passed_bytes",
					    &arrivals, ++seed);
			}
	assert_true(seed > 40);
}

/* The same for packets per second. */
RIG_TEST(packets_are_within_a_percent_of_the_rate)
{
	static const double rates[] = {1, 10.5, 200, 1000};

	for (unsigned int rate = 0; rate < RTE_DIM(rates); rate++)
		for (uint32_t burst = 1; burst <= 32; burst *= 4) {
			const struct nf_setting setting = {"rate_kpps", rates[rate]};
			const struct arrivals arrivals = {.least = 60,
							  .most = 1514,
							  .burst = burst,
							  .gap_us = 500 * burst / rates[rate]};

			if (arrivals.gap_us < 1000)
				expect_rate(rig, &setting, 1e3 * rates[rate], "passed", &arrivals,
					    burst);
		}
}

/* Silences shorter than the bucket takes to fill do not matter, if enough arrives between them. */
RIG_TEST(short_silences_do_not_matter)
{
	const struct nf_setting setting = {"rate_mbps", 100};

	for (uint32_t silence_us = 500; silence_us <= 4500; silence_us += 1000) {
		struct arrivals arrivals = twice(100 / 8., 1, 8);

		arrivals.silence_us = silence_us;
		arrivals.period_us = silence_us + 500;
		arrivals.gap_us /= 2.0 * arrivals.period_us / 500;
		expect_rate(rig, &setting, 1e8 / 8, "passed_bytes", &arrivals, silence_us);
	}
}

/* Whatever arrives, and with any bucket: never more than the rate, the bucket and a packet. */
RIG_TEST(a_second_never_exceeds_rate_and_bucket)
{
	uint64_t random = 7;

	for (int round = 0; round < 40; round++) {
		const double mbps = 1 + random_below(&random, 500);
		const double burst_bytes =
			1 + random_below(&random, 1 << random_below(&random, 21));
		const struct nf_setting settings[] = {{"rate_mbps", mbps},
						      {"burst_bytes", burst_bytes}};
		const struct arrivals arrivals = {
			.least = 60,
			.most = 60 + random_below(&random, 1500),
			.burst = 1 + random_below(&random, 32),
			.gap_us = 1 + random_below(&random, 3000),
			.silence_us = random_below(&random, 700000),
			.period_us = 1000000,
		};
		struct arriving arriving;
		double least, most;

		rig_make(rig, "Limiter", settings, 2);
		arriving = arriving_of(rig, &arrivals, random_next(&random));
		extremes(&arriving, "passed_bytes", &least, &most);
		rte_pktmbuf_free(arriving.packet);
		assert_true(most <= mbps * 1e6 / 8 + burst_bytes + arrivals.most + 4);
	}
}

/* Each decision is that of exact arithmetic, in bits per microsecond, over a long time. */
RIG_TEST(decisions_are_exact)
{
	static const int64_t rates[] = {1, 7, 100, 999};
	uint64_t random = 3;

	for (unsigned int i = 0; i < RTE_DIM(rates); i++) {
		const int64_t bucket = 8 * 20000;
		const struct nf_setting settings[] = {{"rate_mbps", (double)rates[i]},
						      {"burst_bytes", (double)bucket / 8}};
		int64_t tokens = bucket;
		uint64_t now_us = 1;

		rig_make(rig, "Limiter", settings, 2);
		for (int packet = 0; packet < 100000; packet++) {
			const uint16_t length = 60 + random_below(&random, 1455);
			const uint64_t passed_us = random_below(&random, 6330 / rates[i] + 1);
			struct rte_mbuf *mbuf = rte_pktmbuf_alloc(rig->pool);

			assert_non_null(mbuf);
			metadata_begin(mbuf, NF_INSIDE, 0);
			assert_non_null(rte_pktmbuf_append(mbuf, length));
			now_us += passed_us;
			tokens = RTE_MIN(tokens + (int64_t)passed_us * rates[i], bucket);
			rig->nf->now_us = now_us;
			nf_process(rig->nf, &mbuf, 1, &rig->out);
			assert_int_equal(rig->out.n, tokens > 0);
			tokens -= tokens > 0 ? 8 * (length + 4) : 0;
			nf_out_free(&rig->out);
		}
		assert_true(rig_count(rig, "passed") > 10000);
		assert_true(rig_count(rig, "dropped") > 10000);
	}
}

static uint32_t passed_of(struct rig *rig, uint32_t n, enum nf_side from, uint64_t now_us)
{
	uint32_t passed = 0;

	for (uint32_t i = 0; i < n; i++) {
		rig_offer(rig, packet_from_spec(rig, &(struct packet_spec){.from = from}), now_us);
		passed += rig->out.n;
	}
	return passed;
}

/* Sides do not share a bucket; a clock that is set back fills none. */
RIG_TEST(sides_have_their_own_buckets)
{
	RIG_MAKE(rig, "Limiter", {"rate_mbps", 0}, {"rate_kpps", 1}, {"burst_packets", 3});
	assert_int_equal(passed_of(rig, 10, NF_INSIDE, 1000), 3);
	assert_int_equal(passed_of(rig, 10, NF_OUTSIDE, 1000), 3);
	assert_int_equal(passed_of(rig, 10, NF_INSIDE, 1), 0);
	assert_int_equal(passed_of(rig, 10, NF_INSIDE, 2000), 1);
	assert_int_equal(passed_of(rig, 10, NF_INSIDE, 900000), 3);
}

/* A frame counts with its checksum, and may be larger than the bucket. */
RIG_TEST(frames_count_with_their_checksum)
{
	RIG_MAKE(rig, "Limiter", {"rate_mbps", 8}, {"burst_bytes", 1});
	for (int i = 0; i < 100; i++)
		rig_offer(rig, packet_of(rig, (uint8_t[60]){0}, 60), 1 + (uint64_t)i);
	assert_int_equal(rig_count(rig, "passed"), 2); /* at 1 and 65: 8 Mbit/s is a byte per us */
	assert_counts(rig, {"passed_bytes", 128}, {"dropped_bytes", 98 * 64});
}

/* Hostile packets pass or are freed; all are counted, and without limits all pass. */
RIG_TEST(hostile_packets_are_counted)
{
	RIG_MAKE(rig, "Limiter", {"rate_mbps", 0});
	offer_malformed(rig);
	offer_hostile(rig, NULL, 0, NULL);
	assert_true(rig_count(rig, "passed") >= HOSTILE_PACKETS);
	assert_int_equal(rig_count(rig, "dropped"), 0);
	rig_make(rig, "Limiter", (struct nf_setting[]){{"rate_mbps", 0.001}}, 1);
	offer_hostile(rig, NULL, 0, NULL);
	assert_true(rig_count(rig, "dropped") > 1000);
}
