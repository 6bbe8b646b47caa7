#include "tests/hostile.h"

/* Every packet passes unchanged, malformed ones, too. */
RIG_TEST(passes_everything)
{
	static const uint8_t zeros[20];

	rig_make(rig, "Null", NULL, 0);
	for (uint16_t length = 0; length <= sizeof(zeros); length++) {
		struct rte_mbuf *packet = packet_of(rig, zeros, length);

		rig_offer(rig, packet, 1);
		assert_ptr_equal(rig_sent(rig), packet);
		assert_int_equal(rte_pktmbuf_pkt_len(packet), length);
	}
	assert_int_equal(rig_count(rig, "passed"), sizeof(zeros) + 1);
}
