#include "functions/nat/sessions.h"

#include <stdio.h>

#include <rte_hash_crc.h>

#include "core/memory.h"
#include "core/random.h"

/*
 * Make all ports free, in an order from the seed: ports are unpredictable (RFC 6056) only while the
 * seed, whose default is public, is secret.
 */
static void ports_fill(struct ports *ports, uint64_t *random)
{
	for (int odd = 0; odd < 2; odd++) {
		uint16_t *port = ports->halves[odd].free;

		ports->halves[odd].next = 0;
		ports->halves[odd].n = PORTS_HALF;
		for (uint32_t i = 0; i < PORTS_HALF; i++) {
			const uint32_t other = random_below(random, i + 1);

			port[i] = port[other];
			port[other] = (uint16_t)(PORTS_FIRST + 2 * i + odd);
		}
	}
}

/* A free port, with the parity of `like` if possible; 0 if none is free. */
static uint16_t ports_take(struct ports *ports, uint16_t like)
{
	int odd = like & 1;
	uint32_t at;

	if (ports->halves[odd].n == 0)
		odd = !odd;
	if (ports->halves[odd].n == 0)
		return 0;
	at = ports->halves[odd].next;
	ports->halves[odd].next = at + 1 < PORTS_HALF ? at + 1 : 0;
	ports->halves[odd].n--;
	return ports->halves[odd].free[at];
}

/* Keep a free port from being taken. */
static void ports_withhold(struct ports *ports, uint16_t port)
{
	const int odd = port & 1;
	uint16_t *free = ports->halves[odd].free;
	const uint32_t last = --ports->halves[odd].n; /* none has been taken */

	for (uint32_t i = 0; i < last; i++)
		if (free[i] == port)
			RTE_SWAP(free[i], free[last]);
}

static void ports_give(struct ports *ports, uint16_t port)
{
	const int odd = port & 1;
	const uint32_t end = ports->halves[odd].next + ports->halves[odd].n;

	ports->halves[odd].free[end < PORTS_HALF ? end : end - PORTS_HALF] = port;
	ports->halves[odd].n++;
}

static struct rte_hash *make_table(const char *of, uint32_t entries, int socket)
{
	static unsigned int packet_spec;
	char name[RTE_HASH_NAMESIZE];
	const struct rte_hash_parameters parameters = {
		.name = name,
		.entries = entries,
		.key_len = sizeof(struct flow_key),
		.hash_func = flow_hash_of,
		.socket_id = socket,
	};

	snprintf(name, sizeof(name), "nat_%s_%u", of,
		 __atomic_fetch_add(&packet_spec, 1, __ATOMIC_RELAXED));
	return rte_hash_create(&parameters);
}

static void set_timeouts(struct sessions *sessions, const uint64_t *timeout_us)
{
	const uint32_t places = (uint32_t)rte_hash_max_key_id(sessions->table) + 1;
	uint64_t least = timeout_us[PHASE_UDP];

	for (int phase = PHASE_UDP; phase < PHASES; phase++) {
		sessions->timeout_us[phase] = timeout_us[phase];
		least = RTE_MIN(least, timeout_us[phase]);
	}
	sessions->sweep = sweep_of(places, least / 2 + 1);
}

static bool allocate(struct sessions *sessions, const struct sessions_setup *setup, int socket)
{
	const size_t lists = (size_t)NAT_PROTOCOLS * setup->addresses;

	sessions->table = make_table("sessions", setup->most, socket);
	sessions->endpoints = make_table("endpoints", setup->most, socket);
	sessions->hosts = make_table("hosts", setup->most, socket);
	if (!sessions->table || !sessions->endpoints || !sessions->hosts)
		return false;
	sessions->sessions = nf_zalloc(((size_t)rte_hash_max_key_id(sessions->table) + 1) *
				       sizeof(*sessions->sessions));
	sessions->links = nf_zalloc(((size_t)rte_hash_max_key_id(sessions->table) + 1) *
				    sizeof(*sessions->links));
	sessions->mappings = nf_zalloc(((size_t)rte_hash_max_key_id(sessions->endpoints) + 1) *
				       sizeof(*sessions->mappings));
	sessions->taken = nf_zalloc(((size_t)rte_hash_max_key_id(sessions->hosts) + 1) *
				    sizeof(*sessions->taken));
	sessions->outside = nf_zalloc(lists * 65536 * sizeof(*sessions->outside));
	sessions->ports = nf_zalloc(lists * sizeof(*sessions->ports));
	return sessions->sessions && sessions->links && sessions->mappings && sessions->taken &&
	       sessions->outside && sessions->ports;
}

struct sessions *sessions_create(const struct sessions_setup *setup, int socket)
{
	struct sessions *sessions = nf_zalloc(sizeof(*sessions));
	uint64_t random = setup->seed;

	if (!sessions || !allocate(sessions, setup, socket)) {
		fprintf(stderr, "NAT: no memory for %u sessions and %u addresses\n", setup->most,
			setup->addresses);
		sessions_destroy(sessions);
		return NULL;
	}
	sessions->first_address = setup->first_address;
	sessions->addresses = setup->addresses;
	sessions->host_ports = setup->host_ports;
	sessions->aged = setup->aged;
	set_timeouts(sessions, setup->timeout_us);
	for (uint32_t i = 0; i < NAT_PROTOCOLS * setup->addresses; i++)
		ports_fill(&sessions->ports[i], &random);
	return sessions;
}

void sessions_destroy(struct sessions *sessions)
{
	if (!sessions)
		return;
	rte_hash_free(sessions->table);
	rte_hash_free(sessions->endpoints);
	rte_hash_free(sessions->hosts);
	nf_free(sessions->sessions);
	nf_free(sessions->links);
	nf_free(sessions->mappings);
	nf_free(sessions->taken);
	nf_free(sessions->outside);
	nf_free(sessions->ports);
	nf_free(sessions);
}

static struct flow_key endpoint_key(uint8_t protocol, struct endpoint endpoint)
{
	return (struct flow_key){
		.source = endpoint.address,
		.source_port = endpoint.port,
		.protocol = protocol,
	};
}

struct mapping *mapping_inside(const struct sessions *sessions, uint8_t protocol,
			       struct endpoint endpoint)
{
	const struct flow_key key = endpoint_key(protocol, endpoint);
	const int32_t place = rte_hash_lookup(sessions->endpoints, &key);

	return place >= 0 ? &sessions->mappings[place] : NULL;
}

static uint32_t list_of(const struct sessions *sessions, uint8_t protocol, uint32_t address)
{
	return nat_protocol(protocol) * sessions->addresses + address;
}

static uint32_t *outside_of(struct sessions *sessions, const struct mapping *mapping)
{
	const uint32_t address =
		rte_be_to_cpu_32(mapping->outside.address) - sessions->first_address;

	return &sessions->outside[list_of(sessions, mapping->protocol, address) * 65536 +
				  rte_be_to_cpu_16(mapping->outside.port)];
}

static struct flow_key host_key(uint8_t protocol, rte_be32_t address)
{
	return endpoint_key(protocol, (struct endpoint){.address = address});
}

/* A port of an external address for an inside host; 0 if none is free, or the host has enough. */
static uint16_t take_port(struct sessions *sessions, const struct flow_key *endpoint,
			  uint32_t address)
{
	const struct flow_key key = host_key(endpoint->protocol, endpoint->source);
	const int32_t host = rte_hash_add_key(sessions->hosts, &key);
	uint16_t port = 0;

	if (host >= 0 && sessions->taken[host] < sessions->host_ports)
		port = ports_take(
			&sessions->ports[list_of(sessions, endpoint->protocol, address)],
			rte_be_to_cpu_16(endpoint->source_port));
	if (port != 0)
		sessions->taken[host]++;
	else if (host >= 0 && sessions->taken[host] == 0)
		rte_hash_del_key(sessions->hosts, &key);
	return port;
}

static void give_port(struct sessions *sessions, const struct mapping *mapping)
{
	const struct flow_key key = host_key(mapping->protocol, mapping->inside.address);
	const uint32_t address =
		rte_be_to_cpu_32(mapping->outside.address) - sessions->first_address;
	const int32_t host = rte_hash_lookup(sessions->hosts, &key);

	ports_give(&sessions->ports[list_of(sessions, mapping->protocol, address)],
		   rte_be_to_cpu_16(mapping->outside.port));
	if (host >= 0 && --sessions->taken[host] == 0)
		rte_hash_del_key(sessions->hosts, &key);
}

/* The external address of a host's forwards is kept like the ports that it has, without a protocol. */
bool sessions_forwarded(const struct sessions *sessions, rte_be32_t host, rte_be32_t *address)
{
	const struct flow_key key = host_key(0, host);
	const int32_t place = sessions->forwards ? rte_hash_lookup(sessions->hosts, &key) : -1;

	if (place >= 0)
		*address = sessions->taken[place];
	return place >= 0;
}

rte_be32_t sessions_address_of(const struct sessions *sessions, rte_be32_t host)
{
	rte_be32_t address;

	if (unlikely(sessions_forwarded(sessions, host, &address)))
		return address;
	return rte_cpu_to_be_32(sessions->first_address +
				rte_hash_crc_4byte(host, 0) % sessions->addresses);
}

/* All mappings of a host have one external address (RFC 4787, REQ-2). */
static int32_t map(struct sessions *sessions, const struct flow_key *key, int32_t place)
{
	const rte_be32_t address = sessions_address_of(sessions, key->source);
	const uint16_t port =
		take_port(sessions, key, rte_be_to_cpu_32(address) - sessions->first_address);
	struct mapping *mapping = &sessions->mappings[place];

	if (port == 0) {
		rte_hash_del_key(sessions->endpoints, key);
		return NO_PORT;
	}
	*mapping = (struct mapping){
		.inside = {key->source, key->source_port},
		.outside = {address, rte_cpu_to_be_16(port)},
		.protocol = key->protocol,
	};
	*outside_of(sessions, mapping) = (uint32_t)place + 1;
	return place;
}

/* The index of an inside endpoint's mapping, added if missing. */
static int32_t mapping_for(struct sessions *sessions, const struct flow_key *flow)
{
	const struct flow_key key =
		endpoint_key(flow->protocol, (struct endpoint){flow->source, flow->source_port});
	const int32_t place = rte_hash_add_key(sessions->endpoints, &key);

	if (place < 0)
		return NO_PLACE;
	if (sessions->mappings[place].sessions > 0 || sessions->mappings[place].forwards)
		return place;
	return map(sessions, &key, place);
}

bool sessions_forward(struct sessions *sessions, uint8_t protocol, struct endpoint outside,
		      struct endpoint inside)
{
	const struct flow_key key = endpoint_key(protocol, inside);
	const struct flow_key of_host = host_key(0, inside.address);
	const int32_t place = rte_hash_add_key(sessions->endpoints, &key);
	const int32_t host = rte_hash_add_key(sessions->hosts, &of_host);
	const uint32_t address = rte_be_to_cpu_32(outside.address) - sessions->first_address;
	const uint16_t port = rte_be_to_cpu_16(outside.port);
	struct mapping *mapping = &sessions->mappings[place];

	if (place < 0 || host < 0)
		return false;
	sessions->forwards = true;
	sessions->taken[host] = outside.address;
	*mapping = (struct mapping){
		.inside = inside, .outside = outside, .protocol = protocol, .forwards = true};
	*outside_of(sessions, mapping) = (uint32_t)place + 1;
	if (port >= PORTS_FIRST)
		ports_withhold(&sessions->ports[list_of(sessions, protocol, address)], port);
	return true;
}

static void unmap(struct sessions *sessions, struct mapping *mapping)
{
	const struct flow_key key = endpoint_key(mapping->protocol, mapping->inside);

	*outside_of(sessions, mapping) = 0;
	give_port(sessions, mapping);
	rte_hash_del_key(sessions->endpoints, &key);
}

static enum nat_phase first_phase(uint8_t protocol)
{
	switch (nat_protocol(protocol)) {
	case NAT_TCP:
		return PHASE_TCP_TRANSITORY;
	case NAT_ICMP:
		return PHASE_ICMP;
	default:
		return PHASE_UDP;
	}
}

/* Add a session to its mapping, as the newest. */
static void link_session(struct sessions *sessions, struct mapping *mapping, uint32_t place)
{
	sessions->links[place] = (struct session_link){.older = mapping->first};
	if (mapping->first)
		sessions->links[mapping->first - 1].newer = place + 1;
	mapping->first = place + 1;
	mapping->sessions++;
}

static void unlink_session(struct sessions *sessions, struct mapping *mapping, uint32_t place)
{
	const struct session_link link = sessions->links[place];

	if (link.older)
		sessions->links[link.older - 1].newer = link.newer;
	if (link.newer)
		sessions->links[link.newer - 1].older = link.older;
	else
		mapping->first = link.older;
	mapping->sessions--;
}

int32_t session_start(struct sessions *sessions, const struct flow_key *key, uint64_t *started)
{
	const int32_t place = rte_hash_add_key(sessions->table, key);
	int32_t mapping;

	if (place < 0)
		return NO_PLACE;
	if (sessions->sessions[place].phase != PHASE_FREE)
		return place;
	mapping = mapping_for(sessions, key);
	if (mapping < 0) {
		rte_hash_del_key(sessions->table, key);
		return mapping;
	}
	link_session(sessions, &sessions->mappings[mapping], (uint32_t)place);
	sessions->sessions[place] = (struct session){
		.address = sessions->mappings[mapping].outside.address,
		.port = sessions->mappings[mapping].outside.port,
		.phase = first_phase(key->protocol),
		.marks = sessions_own(sessions, key->destination) ? HAIRPINS : 0,
	};
	(*started)++;
	return place;
}

/* RFC 5382, REQ-5: established once both ends have acknowledged, until both have closed. */
static void tcp_seen(struct session *session, bool outward, uint8_t flags)
{
	const uint8_t done = TCP_FIN_OUT | TCP_FIN_IN, acked = TCP_ACKED_OUT | TCP_ACKED_IN;

	if ((flags & (RTE_TCP_SYN_FLAG | RTE_TCP_ACK_FLAG)) == RTE_TCP_SYN_FLAG &&
	    (session->phase == PHASE_TCP_TRANSITORY || (outward && (session->marks & TCP_FIN_OUT))))
		session->marks &= HAIRPINS; /* the same ports again */
	if (flags & RTE_TCP_ACK_FLAG)
		session->marks |= outward ? TCP_ACKED_OUT : TCP_ACKED_IN;
	if (flags & RTE_TCP_FIN_FLAG)
		session->marks |= outward ? TCP_FIN_OUT : TCP_FIN_IN;
	if (flags & RTE_TCP_RST_FLAG)
		session->marks |= TCP_RESET;
	session->phase = (session->marks & acked) == acked && (session->marks & done) != done &&
					 !(session->marks & TCP_RESET)
				 ? PHASE_TCP_ESTABLISHED
				 : PHASE_TCP_TRANSITORY;
}

void session_seen(struct session *session, bool outward, uint8_t tcp_flags, uint64_t now_us)
{
	if (session->phase >= PHASE_TCP_TRANSITORY)
		tcp_seen(session, outward, tcp_flags);
	else if (!outward) /* inbound UDP does not refresh a mapping (RFC 4787, REQ-6) */
		return;
	session->last_us = now_us;
}

static enum nat_protocol protocol_in(enum nat_phase phase)
{
	switch (phase) {
	case PHASE_UDP:
		return NAT_UDP;
	case PHASE_ICMP:
		return NAT_ICMP;
	default:
		return NAT_TCP;
	}
}

void session_remove(struct sessions *sessions, uint32_t place)
{
	struct session *session = &sessions->sessions[place];
	struct mapping *mapping =
		mapping_outside(sessions, protocol_in(session->phase), session_outside(session));
	void *key;

	unlink_session(sessions, mapping, place);
	if (mapping->sessions == 0 && !mapping->forwards)
		unmap(sessions, mapping);
	if (rte_hash_get_key_with_position(sessions->table, (int32_t)place, &key) == 0)
		rte_hash_del_key(sessions->table, key);
	session->phase = PHASE_FREE;
	(*sessions->aged)++;
}

struct mapping *mapping_live(struct sessions *sessions, struct mapping *mapping)
{
	while (mapping && mapping->sessions > 0) {
		const uint32_t first = mapping->first - 1;

		if (!session_timed_out(sessions, &sessions->sessions[first]))
			return mapping;
		session_remove(sessions, first);
	}
	return mapping && mapping->forwards ? mapping : NULL;
}

void sessions_age(struct sessions *sessions, uint64_t now_us)
{
	sessions->now_us = now_us;
	for (uint32_t due = sweep_due(&sessions->sweep, now_us); due > 0; due--)
		session_live(sessions, (int32_t)sweep_next(&sessions->sweep));
}
