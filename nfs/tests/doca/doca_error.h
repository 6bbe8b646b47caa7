/*
 * Stand-ins for the headers of DOCA 2.2, by what its public documentation names and only as far as
 * it is used here: with them, what is written for a card compiles where no SDK is installed. A
 * real SDK's values, and whatever else its structures hold, differ.
 */
#ifndef NFS_TESTS_DOCA_ERROR_H
#define NFS_TESTS_DOCA_ERROR_H

typedef enum doca_error {
	DOCA_SUCCESS,
	DOCA_ERROR_NO_MEMORY,
	DOCA_ERROR_AGAIN,
	DOCA_ERROR_IO_FAILED,
	DOCA_ERROR_NOT_SUPPORTED,
} doca_error_t;

const char *doca_get_error_string(doca_error_t error);

#endif
