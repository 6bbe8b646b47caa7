/*
 * The program of a SmartNIC attached to a network interface: one end of a pair of virtual Ethernet
 * devices, in a network namespace that only this process has. A packet is sent from the other end;
 * XDP_TX sends it back there, XDP_PASS gives it to the kernel above the interface.
 */
#pragma once

#include "rack/nic_program.h"

/* That the interface takes. */
#define NIC_ATTACHED_MOST_BYTES 3514

struct nic_attached;

/* Move this process into a namespace of its own, with the pair. NULL after printing why. */
struct nic_attached *nic_attach_open(void);
/* Attach a program, in place of the one before. False after printing why. */
bool nic_attach_program(struct nic_attached *attached, struct nic_program *program);
/* As nic_program_run(), on the interface. */
bool nic_attached_run(struct nic_attached *attached, struct nic_program *program,
		      const uint8_t *bytes, uint32_t length, uint64_t time_us,
		      struct nic_result *result);
void nic_attach_close(struct nic_attached *attached);
