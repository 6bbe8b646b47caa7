/*
 * Match: sorts packets by filter expressions, those of tcpdump (pcap-filter(7)).
 *
 * libpcap compiles each expression to BPF (McCanne and Jacobson, 1993) and runs it. The first
 * expression that matches chooses the numbered gate; packets that match none leave by one more
 * gate, the last, or are freed. If only one gate remains, packets go forward instead: one
 * expression with `drop_unmatched` is a plain filter.
 *
 * Packets of both sides are matched by their bytes, whatever they are, as tcpdump does: behind a
 * VLAN tag an expression only looks after the word `vlan`, and a packet that ends before a byte
 * that is asked for does not match. Host names are resolved once, when the instance is created.
 *
 * rte_bpf would run the programs faster, but that of DPDK 22.11 runs some of them wrong: it adds
 * the offset of a load to the wrong register (`udp[1]`), and its code for others crashes or hangs.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <pcap/pcap.h>

#include "core/memory.h"
#include "core/nf.h"

enum { FILTERS, DROP_UNMATCHED };
static const struct nf_parameter parameters[] = {
	[FILTERS] = {"filters", "expressions of pcap-filter(7), separated by semicolons",
		     .text = "tcp port 80 or tcp port 443; udp port 53; tcp; udp"},
	[DROP_UNMATCHED] = {"drop_unmatched",
			    "1: packets that match no expression are freed; 0: they leave by the "
			    "last gate",
			    0, 1, 0},
};

enum { MATCHED, UNMATCHED };
static const struct nf_counter counters[] = {
	[MATCHED] = {"matched", "packets that an expression matches"},
	[UNMATCHED] = {"unmatched", "packets that none matches, sent on or freed"},
};

#define LONGEST_PACKET 65535

struct match {
	unsigned int n;
	bool numbered; /* several gates, so that packets leave by one with a number */
	struct bpf_program filters[NF_MOST_BRANCHES];
	uint8_t bytes[LONGEST_PACKET]; /* of a packet in several segments */
};

/* An expression, for messages. */
struct expression {
	unsigned int number; /* from 1 */
	const char *text;    /* without spaces around it */
};

/* Compile an expression as the next filter. 0, or a negative errno after printing why. */
static int compile(struct match *match, pcap_t *pcap, const struct expression *expression)
{
	if (!*expression->text) {
		fprintf(stderr,
			"Match: filter %u is empty\n"
			"hint: write `greater 0` to match all packets\n",
			expression->number);
		return -EINVAL;
	}
	if (pcap_compile(pcap, &match->filters[match->n], expression->text, 1,
			 PCAP_NETMASK_UNKNOWN) < 0) {
		fprintf(stderr,
			"Match: filter %u, \"%s\": %s\n"
			"hint: the syntax is that of tcpdump, see pcap-filter(7)\n",
			expression->number, expression->text, pcap_geterr(pcap));
		return -EINVAL;
	}
	match->n++;
	return 0;
}

/* Cut the first expression off a list, and the spaces around it. */
static const char *next_expression(char **list)
{
	char *expression = strsep(list, ";"), *end;

	while (isspace((unsigned char)*expression))
		expression++;
	end = expression + strlen(expression);
	while (end > expression && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return expression;
}

/* Compile a list of expressions. 0, or a negative errno after printing all that are wrong. */
static int compile_list(struct match *match, pcap_t *pcap, char *list, unsigned int gates)
{
	int result = 0;

	for (unsigned int number = 1; list; number++) {
		const struct expression expression = {number, next_expression(&list)};
		int error;

		if (number > gates) {
			fprintf(stderr,
				"Match: %u filters are most\n"
				"hint: with drop_unmatched 1, %d\n",
				gates, NF_MOST_BRANCHES);
			return -E2BIG;
		}
		error = compile(match, pcap, &expression);
		result = error < 0 ? error : result;
	}
	return result;
}

static int compile_filters(struct nf *nf)
{
	const unsigned int for_others = nf->settings[DROP_UNMATCHED] == 0;
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, LONGEST_PACKET);
	char *list = strdup(nf->texts[FILTERS]);
	int result = -ENOMEM;

	if (pcap && list)
		result = compile_list(nf->state, pcap, list, NF_MOST_BRANCHES - for_others);
	else
		fprintf(stderr, "Match: no memory to compile filters\n");
	free(list);
	if (pcap)
		pcap_close(pcap);
	return result;
}

static void destroy(struct nf *nf)
{
	struct match *match = nf->state;

	for (unsigned int i = 0; i < match->n; i++)
		pcap_freecode(&match->filters[i]);
}

static int create(struct nf *nf)
{
	struct match *match = nf->state;
	const int result = compile_filters(nf);

	match->numbered = match->n > 1 || nf->settings[DROP_UNMATCHED] == 0;
	return result;
}

static unsigned int branches(const struct nf *nf)
{
	const struct match *match = nf->state;

	return match->numbered ? match->n + (nf->settings[DROP_UNMATCHED] == 0) : 0;
}

/* The index of the first filter that matches; their number if none does. */
static inline unsigned int first_match(struct match *match, const struct rte_mbuf *packet)
{
	const uint32_t length = RTE_MIN(rte_pktmbuf_pkt_len(packet), (uint32_t)LONGEST_PACKET);
	const uint8_t *bytes = rte_pktmbuf_read(packet, 0, length, match->bytes);
	unsigned int i = 0;

	while (i < match->n &&
	       !bpf_filter(match->filters[i].bf_insns, bytes, rte_pktmbuf_pkt_len(packet), length))
		i++;
	return i;
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct match *match = nf->state;
	const bool drops = nf->settings[DROP_UNMATCHED] == 1;
	uint16_t unmatched = 0;

	for (uint16_t i = 0; i < n; i++) {
		const unsigned int first = first_match(match, packets[i]);

		unmatched += first == match->n;
		if (first == match->n && drops) {
			rte_pktmbuf_free(packets[i]);
			continue;
		}
		if (match->numbered)
			packet_branch(packets[i], first);
		nf_send(out, packets[i]);
	}
	nf->counters[MATCHED] += n - unmatched;
	nf->counters[UNMATCHED] += unmatched;
}

NF_KIND("Match", "sorts packets by filter expressions, those of tcpdump",
	.state_bytes = sizeof(struct match), .create = create, .process = process,
	.reads_payloads = true, .branches = branches, .destroy = destroy)
