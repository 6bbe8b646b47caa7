/*
 * LB: balances flows over backends, at layer 4, by consistent hashing (functions/lb/maglev.h).
 *
 * A flow from inside is hashed by addresses, protocol and ports. By default its destination becomes
 * the backend's address, with checksums updated, and packets that a backend sends from outside get
 * the virtual address as their source again. With `gates` a packet is unchanged and leaves by the
 * numbered gate of its backend. The choice depends on the flow and on the backends that are up, and
 * on nothing else: no connection is stored, and instances with the same settings agree.
 *
 * If the table's size is a power of two, the hash is that of core/split_hash.h, salted by the seed,
 * and ICMP errors are packets like others: a switch and a SmartNIC can do the same, byte for byte.
 *
 * Backends are numbered addresses from the first one on, or those of a file (tables/backend_file.h),
 * each with a weight; the order of such a backend depends on its address and the seed, so that other
 * lines of the file do not change it.
 *
 * All fragments of a datagram, and packets without ports, are hashed by addresses and protocol
 * only. An ICMP error goes to the backend of the flow that it quotes, with the quote rewritten
 * (RFC 5508, section 4). With `address` 0 every destination is balanced; since it is then not known
 * which one a client used, packets from outside pass as they are. A router's work (time to live,
 * MAC addresses) is not done; checksums of protocols other than UDP and TCP are not updated.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_hash_crc.h>

#include "core/ipv4.h"
#include "core/memory.h"
#include "core/nf.h"
#include "core/rewrite.h"
#include "core/split_hash.h"
#include "functions/lb/maglev.h"
#include "tables/backend_file.h"

/*
 * Mark the backends of a list, such as 2,5, as not up. 0, or -EINVAL after printing why: no list,
 * or no such backend.
 */
static int lb_parse_down(const char *list, bool *up, uint32_t backends)
{
	while (*list) {
		char *end;
		const unsigned long backend = strtoul(list, &end, 10);
		const bool number = end > list && *list >= '0' && *list <= '9';

		if (!number || (*end && (*end != ',' || !end[1]))) {
			fprintf(stderr,
				"LB: down: \"%s\" is not a list of numbers\n"
				"hint: separate them by commas, without spaces: 2,5\n",
				list);
			return -EINVAL;
		}
		if (backend >= backends) {
			fprintf(stderr, "LB: down: there is no backend %.*s\nhint: from 0 to %u\n",
				(int)(end - list), list, backends - 1);
			return -EINVAL;
		}
		up[backend] = false;
		list = *end ? end + 1 : end;
	}
	return 0;
}

enum { BACKENDS, TABLE, SEED, DOWN, ADDRESS, FIRST_BACKEND, GATES, FILE_OF_BACKENDS, UNKNOWN_FRAMES };
static const struct nf_parameter parameters[] = {
	[BACKENDS] = {"backends", "number of backends, at most 64 with `gates`", 1,
		      MAGLEV_MOST_BACKENDS, 8},
	[TABLE] = {"table",
		   "entries of the table, a prime, or a power of two up to 65536; a hundred times "
		   "the backends, or more",
		   2, 1 << 24, 65537},
	[SEED] = {"seed", "seed of the hashes", 0, 4294967295, 1},
	[DOWN] = {"down", "backends that are down, as numbers from 0: 2,5", .text = ""},
	[ADDRESS] = {"address", "virtual address, as a number; 0: every destination is balanced", 0,
		     4294967295, 0},
	[FIRST_BACKEND] = {"first_backend",
			   "address of the first backend, as a number; those of the others follow; "
			   "198.18.0.1",
			   0, 4294967295 - MAGLEV_MOST_BACKENDS, RTE_IPV4(198, 18, 0, 1)},
	[GATES] = {"gates", "1: a packet leaves by its backend's numbered gate, unchanged", 0, 1,
		   0},
	[FILE_OF_BACKENDS] = {"file",
			      "file with the backends, in place of backends and first_backend; none "
			      "if empty",
			      .text = ""},
	NF_OTHER_PARAMETERS(UNKNOWN_FRAMES, "pass", "pass"),
};

enum { BALANCED, RETURNED, ERRORS, FRAGMENTS, PASSED, UNSERVED, OTHER, UNKNOWN, MALFORMED };
static const struct nf_counter counters[] = {
	[BALANCED] = {"balanced", "packets sent to a backend"},
	[RETURNED] = {"returned", "packets of backends sent back from the virtual address"},
	[ERRORS] = {"errors", "ICMP errors about such packets, among those balanced and returned"},
	[FRAGMENTS] = {"fragments", "fragments among those balanced"},
	[PASSED] = {"passed", "packets of other addresses, sent on as they are"},
	[UNSERVED] = {"unserved", "packets freed because all backends are down"},
	NF_OTHER_COUNTERS(OTHER),
};

struct lb {
	uint16_t *table;
	uint32_t size, seed;
	struct backend *list; /* in the order of their numbers */
	uint32_t *sorted;     /* their addresses in ascending order */
	uint32_t backends;
	rte_be32_t address; /* 0: every destination */
	bool gates;
	bool portable;     /* the table's size is a power of two */
	uint16_t first_up; /* MAGLEV_NONE: all are down */
};

static inline bool is_backend(const struct lb *lb, rte_be32_t address)
{
	const uint32_t wanted = rte_be_to_cpu_32(address);
	uint32_t low = 0, high = lb->backends;

	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (lb->sorted[middle] < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low < lb->backends && lb->sorted[low] == wanted;
}

/* 0, or -EINVAL after printing which settings contradict each other. */
static int check(const struct nf *nf)
{
	const struct lb *lb = nf->state;
	uint32_t prime = RTE_MAX(lb->size, lb->backends), weights = 0;

	for (uint32_t i = 0; i < lb->backends; i++)
		weights += lb->list[i].weight;
	while (!maglev_is_prime(prime))
		prime++;
	if (rte_is_power_of_2(lb->size) && lb->size >= lb->backends && lb->size <= SPLIT_RANGE)
		prime = lb->size;
	if (lb->size != prime) {
		fprintf(stderr,
			"LB: table %u is neither a prime above %u backends nor a power of two\n"
			"hint: %u\n",
			lb->size, lb->backends, prime);
		return -EINVAL;
	}
	if (weights > lb->size) {
		fprintf(stderr, "LB: table %u has too few entries for weights of %u in all\n",
			lb->size, weights);
		return -EINVAL;
	}
	if (lb->gates && lb->backends > NF_MOST_BRANCHES) {
		fprintf(stderr, "LB: there are %u backends, but at most %d gates\n", lb->backends,
			NF_MOST_BRANCHES);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < lb->backends; i++)
		if (!lb->gates && rte_be_to_cpu_32(lb->address) == lb->list[i].address) {
			fprintf(stderr, "LB: address is that of backend %u\n", i);
			return -EINVAL;
		}
	return 0;
}

static void destroy(struct nf *nf)
{
	struct lb *lb = nf->state;

	nf_free(lb->table);
	nf_free(lb->list);
	nf_free(lb->sorted);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	return one < other ? -1 : one > other;
}

/* The backends of a file, or numbered ones. 0, or a negative errno after printing why. */
static int make_list(struct nf *nf)
{
	const uint32_t first = (uint32_t)nf->settings[FIRST_BACKEND];
	const char *file = nf->texts[FILE_OF_BACKENDS];
	struct lb *lb = nf->state;

	lb->backends = (uint32_t)nf->settings[BACKENDS];
	lb->list = nf_zalloc_for(nf->kind->name, MAGLEV_MOST_BACKENDS * sizeof(*lb->list));
	lb->sorted = nf_zalloc_for(nf->kind->name, MAGLEV_MOST_BACKENDS * sizeof(*lb->sorted));
	if (!lb->list || !lb->sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < lb->backends; i++)
		lb->list[i] = (struct backend){.address = first + i, .weight = 1};
	if (*file)
		lb->backends = backends_read(nf->kind->name, file, lb->list, MAGLEV_MOST_BACKENDS);
	for (uint32_t i = 0; i < lb->backends; i++)
		lb->sorted[i] = lb->list[i].address;
	qsort(lb->sorted, lb->backends, sizeof(*lb->sorted), by_number);
	return lb->backends > 0 ? 0 : -EINVAL;
}

static int fill(struct nf *nf)
{
	struct lb *lb = nf->state;
	const bool own = *nf->texts[FILE_OF_BACKENDS];
	struct maglev_member *members;
	bool up[MAGLEV_MOST_BACKENDS];
	int result;

	memset(up, true, sizeof(up));
	result = lb_parse_down(nf->texts[DOWN], up, lb->backends);
	if (result < 0)
		return result;
	while (lb->first_up < lb->backends && !up[lb->first_up])
		lb->first_up++;
	if (lb->first_up == lb->backends)
		lb->first_up = MAGLEV_NONE;
	lb->table = nf_zalloc_for(nf->kind->name, lb->size * sizeof(*lb->table));
	members = nf_zalloc_for(nf->kind->name, lb->backends * sizeof(*members));
	for (uint32_t i = 0; members && i < lb->backends; i++)
		members[i] = (struct maglev_member){
			.seed = own ? (uint64_t)lb->seed << 32 | lb->list[i].address
				    : (uint64_t)lb->seed << 16 | i,
			.weight = up[i] ? lb->list[i].weight : 0,
		};
	result = lb->table && members ? maglev_deal(lb->table, lb->size, members, lb->backends)
				      : -ENOMEM;
	nf_free(members);
	return result;
}

static int create(struct nf *nf)
{
	struct lb *lb = nf->state;
	int result;

	*lb = (struct lb){
		.size = (uint32_t)nf->settings[TABLE],
		.seed = (uint32_t)nf->settings[SEED],
		.address = rte_cpu_to_be_32((uint32_t)nf->settings[ADDRESS]),
		.gates = nf->settings[GATES] == 1,
		.portable = rte_is_power_of_2((uint32_t)nf->settings[TABLE]),
	};
	result = make_list(nf);
	if (result == 0)
		result = check(nf);
	if (result == 0)
		result = fill(nf);
	return result;
}

static unsigned int branches(const struct nf *nf)
{
	const struct lb *lb = nf->state;

	return lb->gates ? lb->backends : 0;
}

/* The flow by which the backend of a packet is chosen. */
static inline struct flow_key flow_of(struct rte_mbuf *mbuf, const struct packet *packet)
{
	struct flow_key flow = packet_flow(mbuf, packet);

	if (unlikely(packet->fragment))
		flow.source_port = flow.destination_port = 0;
	return flow;
}

static inline uint16_t backend_of(const struct lb *lb, const struct flow_key *flow)
{
	if (lb->portable) {
		const uint32_t ports =
			(uint32_t)rte_be_to_cpu_16(flow->source_port) << 16 |
			rte_be_to_cpu_16(flow->destination_port);

		return lb->table[split_hash_of(lb->seed, rte_be_to_cpu_32(flow->source),
					       rte_be_to_cpu_32(flow->destination), ports,
					       flow->protocol) &
				 (lb->size - 1)];
	}
	return maglev_backend(lb->table, lb->size, rte_hash_crc(flow, sizeof(*flow), lb->seed));
}

/* The backend of an IPv6 packet; fragments have neither ports nor a protocol that all know. */
static uint16_t backend_of_ipv6(const struct lb *lb, struct rte_mbuf *mbuf,
				const struct packet *packet)
{
	const rte_be16_t *ports = packet->fragment ? NULL : packet_ports(mbuf, packet);
	struct {
		uint8_t ends[32];
		rte_be16_t ports[2];
		uint32_t protocol;
	} flow = {.protocol = packet->fragment ? 0 : packet->protocol};

	memcpy(flow.ends, packet_ipv6(mbuf, packet)->src_addr, sizeof(flow.ends));
	if (ports)
		memcpy(flow.ports, ports, sizeof(flow.ports));
	return maglev_backend(lb->table, lb->size, rte_hash_crc(&flow, sizeof(flow), lb->seed));
}

/* Replace an address of a packet, or of a quoted one. */
static void put_address(struct rte_mbuf *mbuf, const struct packet *packet, enum end end,
			rte_be32_t address)
{
	if (!packet_ports(mbuf, packet)) {
		address_rewrite(mbuf, packet, end, address);
		return;
	}
	endpoint_rewrite(mbuf, packet, end,
			 (struct endpoint){address, endpoint_of(mbuf, packet, end).port});
}

/* Whether it is an ICMP error about a packet that its receiver sent; also finds that packet. */
static bool quotes(struct rte_mbuf *mbuf, const struct packet *packet, struct packet *quoted)
{
	const struct rte_ipv4_hdr *ip;

	if (likely(packet->protocol != IPPROTO_ICMP) || packet->l4 == 0 || packet->fragment ||
	    !icmp_is_error(icmp_type(mbuf, packet)) || !quoted_packet(mbuf, packet, quoted))
		return false;
	ip = packet_ipv4(mbuf, quoted);
	quoted->fragment = (ip->fragment_offset &
			    RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK | RTE_IPV4_HDR_MF_FLAG)) != 0;
	return ip->src_addr == packet_ipv4(mbuf, packet)->dst_addr;
}

/* Send a packet on as it is. */
static void pass(struct nf *nf, struct rte_mbuf *mbuf, int counter, struct nf_out *out)
{
	const struct lb *lb = nf->state;

	if (lb->gates && packet_from(mbuf) == NF_INSIDE) {
		if (lb->first_up == MAGLEV_NONE) {
			nf_drop(nf, mbuf, UNSERVED);
			return;
		}
		packet_branch(mbuf, lb->first_up);
	}
	nf->counters[counter]++;
	nf_send(out, mbuf);
}

/* Send a packet from inside to its backend. */
static void balance(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
		    struct nf_out *out)
{
	const struct lb *lb = nf->state;
	struct flow_key flow = flow_of(mbuf, packet);
	struct packet quoted;
	const bool error = !lb->portable && quotes(mbuf, packet, &quoted);
	uint16_t backend;

	if (lb->address && flow.destination != lb->address) {
		pass(nf, mbuf, PASSED, out);
		return;
	}
	if (unlikely(error)) {
		const struct flow_key from_backend = flow_of(mbuf, &quoted);

		flow = flow_reversed(&from_backend);
	}
	backend = backend_of(lb, &flow);
	if (unlikely(backend == MAGLEV_NONE)) {
		nf_drop(nf, mbuf, UNSERVED);
		return;
	}
	nf->counters[BALANCED]++;
	nf->counters[ERRORS] += error;
	nf->counters[FRAGMENTS] += packet->fragment;
	if (lb->gates) {
		packet_branch(mbuf, backend);
	} else {
		const rte_be32_t address = rte_cpu_to_be_32(lb->list[backend].address);

		if (unlikely(error))
			put_address(mbuf, &quoted, END_SOURCE, address);
		put_address(mbuf, packet, END_DESTINATION, address);
		if (unlikely(error))
			icmp_checksum_set(mbuf, packet);
	}
	nf_send(out, mbuf);
}

/* Send a packet from outside to its client, as if it came from the virtual address. */
static void give_back(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
		      struct nf_out *out)
{
	const struct lb *lb = nf->state;
	const bool of_backend = is_backend(lb, packet_ipv4(mbuf, packet)->src_addr);
	struct packet quoted;
	const bool error = !lb->portable && quotes(mbuf, packet, &quoted) &&
			   is_backend(lb, packet_ipv4(mbuf, &quoted)->dst_addr);

	if (lb->gates || !lb->address || (!of_backend && !error)) {
		pass(nf, mbuf, PASSED, out);
		return;
	}
	nf->counters[RETURNED]++;
	nf->counters[ERRORS] += error;
	if (error)
		put_address(mbuf, &quoted, END_DESTINATION, lb->address);
	if (of_backend) /* an error may be a router's */
		put_address(mbuf, packet, END_SOURCE, lb->address);
	if (error)
		icmp_checksum_set(mbuf, packet);
	nf_send(out, mbuf);
}

/* What is not IPv4: IPv6 that need not be changed is balanced, other frames are not understood. */
static void take_other(struct nf *nf, struct rte_mbuf *mbuf, struct packet packet,
		       struct nf_out *out)
{
	const struct lb *lb = nf->state;

	if (packet.type == PACKET_IPV6 && lb->gates && !lb->portable && !lb->address &&
	    packet_from(mbuf) == NF_INSIDE && lb->first_up != MAGLEV_NONE) {
		packet = packet_behind_extensions(mbuf, packet);
		if (packet.type == PACKET_IPV6) {
			packet_branch(mbuf, backend_of_ipv6(lb, mbuf, &packet));
			nf->counters[BALANCED]++;
			nf->counters[FRAGMENTS] += packet.fragment;
			nf_send(out, mbuf);
			return;
		}
	}
	if (packet.type == PACKET_MALFORMED) {
		nf_drop(nf, mbuf, MALFORMED);
	} else if (packet.type == PACKET_ARP ? nf->passes_arp : nf->passes_unknown) {
		pass(nf, mbuf, OTHER, out);
	} else {
		nf_drop(nf, mbuf, UNKNOWN);
	}
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	for (uint16_t i = 0; i < n; i++) {
		const struct packet packet = packet_headers(packets[i]);

		if (unlikely(packet.type != PACKET_IPV4))
			take_other(nf, packets[i], packet, out);
		else if (packet_from(packets[i]) == NF_INSIDE)
			balance(nf, packets[i], &packet, out);
		else
			give_back(nf, packets[i], &packet, out);
	}
}

NF_KIND("LB", "balances flows over backends by consistent hashing",
	.state_bytes = sizeof(struct lb), .create = create, .process = process,
	.branches = branches, .destroy = destroy)
