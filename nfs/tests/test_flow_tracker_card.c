#include "tests/flow_tracker_rig.h"

#include "functions/flow_offload/offload.h"
#include "functions/flow_offload/software.h"

/* A card that accepts every connection, and records the calls. */
static struct {
	bool works, active;
	unsigned int forwarded;
} card;

static void *card_create(uint32_t connections, int socket)
{
	return card.works ? software_create(connections, socket) : NULL;
}

static bool card_forward(void *state, uint32_t place, uint16_t port)
{
	const struct flow_key key = software_key(state, place);

	assert_int_equal(rte_be_to_cpu_32(key.source),
			 port == NF_INSIDE ? tcp.source : tcp.destination);
	card.forwarded++;
	return true;
}

static bool card_active(void *state, uint32_t place)
{
	(void)state;
	(void)place;
	return card.active;
}

static void card_withdraw(void *state, uint32_t place)
{
	const struct flow_key key = software_key(state, place);

	assert_int_not_equal(key.source, 0);
	card.forwarded--;
}

static struct flow_offload_backend card_backend = {
	.name = "card",
	.help = "a card in a test",
	.preference = 100,
	.create = card_create,
	.places = software_places,
	.lookup = software_lookup,
	.insert = software_insert,
	.remove = software_remove,
	.destroy = software_destroy,
	.forward = card_forward,
	.withdraw = card_withdraw,
	.active = card_active,
};

FLOW_OFFLOAD_REGISTER(card_backend)

static void open_with_card(struct rig *rig, uint64_t now_us)
{
	card.works = true;
	RIG_MAKE(rig, "FlowTracker", {"connections", 64}, {"established_s", 10});
	card.works = false;
	passes(rig, &tcp, false, SYN, now_us);
	passes(rig, &tcp, true, SYN | ACK, now_us);
	assert_int_equal(card.forwarded, 0);
	passes(rig, &tcp, false, ACK, now_us);
	passes(rig, &tcp, true, ACK, now_us);
	assert_int_equal(card.forwarded, 1);
	assert_int_equal(rig_count(rig, "forwarded"), 1);
}

/* A connection is kept while the card forwards it, and then removed from both. */
RIG_TEST(connections_live_while_the_card_forwards)
{
	open_with_card(rig, SECOND);
	card.active = true;
	assert_false(forgotten_after(rig, SECOND, 100));
	card.active = false;
	assert_true(forgotten_after(rig, 101 * SECOND, 30));
	assert_int_equal(card.forwarded, 0);
	assert_int_equal(rig_count(rig, "forwarded"), 0);
}

/* The cores process a closing connection, and the card an established one again. */
RIG_TEST(closing_connections_return_to_the_cores)
{
	static const uint8_t ends[] = {FIN | ACK, RST};

	for (size_t i = 0; i < RTE_DIM(ends); i++) {
		open_with_card(rig, SECOND);
		passes(rig, &tcp, true, ends[i], SECOND);
		assert_int_equal(card.forwarded, 0);
		assert_int_equal(rig_count(rig, "forwarded"), 0);
	}
	passes(rig, &tcp, false, SYN, SECOND);
	passes(rig, &tcp, true, SYN | ACK, SECOND);
	passes(rig, &tcp, false, ACK, SECOND);
	assert_int_equal(card.forwarded, 1);
}
