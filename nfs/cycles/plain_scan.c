#include <stdbool.h>
#include <stdio.h>

#include "cycles/plain_scan.h"

#include "core/rules.h"

#define MOST_RULES 256
#define HEADERS 42 /* Ethernet, IPv4, UDP */

bool plain_scan_create(struct plain_scan *scan)
{
	const char *expressions[MOST_RULES];
	unsigned int flags[MOST_RULES], ids[MOST_RULES], n;
	const struct rule *all = rules(&n);
	hs_compile_error_t *error;

	for (unsigned int i = 0; i < n; i++) {
		expressions[i] = all[i].expression;
		flags[i] = HS_FLAG_DOTALL | HS_FLAG_SINGLEMATCH;
		ids[i] = i;
	}
	if (hs_compile_multi(expressions, flags, ids, n, HS_MODE_BLOCK, NULL, &scan->database,
			     &error) == HS_SUCCESS &&
	    hs_alloc_scratch(scan->database, &scan->scratch) == HS_SUCCESS)
		return true;
	fprintf(stderr, "cycles: cannot start Hyperscan\n");
	return false;
}

void plain_scan_destroy(struct plain_scan *scan)
{
	hs_free_scratch(scan->scratch);
	hs_free_database(scan->database);
}

static int count(unsigned int rule, unsigned long long from, unsigned long long to,
		 unsigned int flags, void *matches)
{
	(void)rule, (void)from, (void)to, (void)flags;
	++*(unsigned int *)matches;
	return 0;
}

unsigned int plain_scan_packet(const struct plain_scan *scan, const struct rte_mbuf *packet)
{
	unsigned int matches = 0;

	hs_scan(scan->database, rte_pktmbuf_mtod_offset(packet, const char *, HEADERS),
		rte_pktmbuf_data_len(packet) - HEADERS, 0, scan->scratch, count, &matches);
	return matches;
}
