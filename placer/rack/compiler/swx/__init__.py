"""The program of the switch as a pipeline of DPDK (rte_swx), the software switch that runs it."""
