#include "functions/nat/ports.h"

#include "core/random.h"

void ports_fill(struct ports *ports, uint64_t *random)
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

uint16_t ports_take(struct ports *ports, uint16_t like)
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

void ports_give(struct ports *ports, uint16_t port)
{
	const int odd = port & 1;
	const uint32_t end = ports->halves[odd].next + ports->halves[odd].n;

	ports->halves[odd].free[end < PORTS_HALF ? end : end - PORTS_HALF] = port;
	ports->halves[odd].n++;
}
