"""Admission to a GPU, checked without the code that admits.

    DEVICE, SLOs, ANSWER -> latency of each admitted SLO, part by part -> every constraint that the answer breaks

Everything is computed from CONTRACTS.md, section 10, in exact fractions of the decimals in the files.
"""

from placer.verify.admission.claims import (
    AdmissionCase,
    ClaimedAnswer,
    ClaimedDevice,
    ClaimedSlo,
    admission_case,
    device_of,
    is_answer,
    read_admission,
    read_json,
    read_slos,
    slos_of,
)
from placer.verify.admission.faults import admission_faults, late
from placer.verify.admission.latency import LatencyTerms, latency_terms

__all__ = [
    "AdmissionCase",
    "ClaimedAnswer",
    "ClaimedDevice",
    "ClaimedSlo",
    "LatencyTerms",
    "admission_case",
    "admission_faults",
    "device_of",
    "is_answer",
    "late",
    "latency_terms",
    "read_admission",
    "read_json",
    "read_slos",
    "slos_of",
]
