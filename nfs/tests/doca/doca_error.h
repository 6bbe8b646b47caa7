/*
 * Substitutes for the headers of DOCA 2.2, by its public documentation and only as far as needed
 * here: code for a card compiles without the SDK. Values and further fields of the real SDK differ.
 */
#pragma once

typedef enum doca_error {
	DOCA_SUCCESS,
	DOCA_ERROR_NO_MEMORY,
	DOCA_ERROR_AGAIN,
	DOCA_ERROR_IO_FAILED,
	DOCA_ERROR_NOT_SUPPORTED,
} doca_error_t;

const char *doca_get_error_string(doca_error_t error);
