#include "testbed/chain_result.h"

void chain_result_add(struct chain_result *result, const struct chain_workload *workload)
{
	const struct chain *chain = chain_workload_chain(workload);
	const struct latencies latencies = chain_workload_latencies(workload);

	for (unsigned int i = 0; i < chain_functions(chain); i++) {
		const struct chain_counts counts = chain_counts_of(chain, i);

		result->stages[i].entered += counts.entered;
		result->stages[i].sent += counts.sent;
		result->stages[i].sent_back += counts.sent_back;
	}
	result->lost += chain_lost(chain);
	latencies_merge(&result->latencies, &latencies);
}

double chain_result_leaving(const struct chain_result *result, unsigned int stage)
{
	const uint64_t entered = result->stages[0].entered;

	return entered ? (double)result->stages[stage].sent / (double)entered : 0;
}

double chain_result_dropped_pct(const struct chain_result *result, unsigned int stage)
{
	const struct chain_counts *counts = &result->stages[stage];
	const uint64_t passed = counts->sent + counts->sent_back;

	if (passed >= counts->entered) /* it makes several packets of one, or none entered */
		return 0;
	return 100.0 * (double)(counts->entered - passed) / (double)counts->entered;
}
