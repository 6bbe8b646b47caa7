/*
 * The program of an emulated SmartNIC: an object for XDP, loaded by libbpf, which the kernel checks
 * and runs packet by packet (BPF_PROG_TEST_RUN).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The kernel runs a packet in one page, with room at both ends. */
#define NIC_LEAST_BYTES 14
#define NIC_MOST_BYTES 3520

struct nic_program;

/*
 * Load the object of a file into the kernel. NULL after printing why: no such file, no such
 * program, refused by the kernel's verifier, whose log is printed, or not allowed to load programs.
 */
struct nic_program *nic_program_load(const char *path);
void nic_program_free(struct nic_program *program);
/* Go on with the counters and rates of another one; false after printing why. */
bool nic_program_take_over(struct nic_program *program, const struct nic_program *from);

/* A packet as the program leaves it, and what becomes of it: one of XDP's actions. */
struct nic_result {
	uint32_t action;
	uint32_t length;
	const uint8_t *bytes; /* valid until the next packet */
};

/* Run a packet of at most NIC_MOST_BYTES, which came at a time. False after printing why. */
bool nic_program_run(struct nic_program *program, const uint8_t *bytes, uint32_t length,
		     uint64_t time_us, struct nic_result *result);

/* The program in the kernel. */
int nic_program_descriptor(const struct nic_program *program);
/* Set the clock of a program that keeps rates; false after printing why. */
bool nic_program_set_clock(struct nic_program *program, uint64_t time_us);
/* How many packets the program has dropped, by all its counters; false after printing why. */
bool nic_program_dropped(struct nic_program *program, uint64_t *dropped);

/*
 * Write the counters of functions as a JSON array, or those of drops as members of an object, each
 * behind a comma. False after printing why.
 */
bool nic_program_write_functions(struct nic_program *program, FILE *stream);
bool nic_program_write_reasons(struct nic_program *program, FILE *stream);
