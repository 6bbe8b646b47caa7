"""The meta-compiler: a plan of chains on a rack becomes the programs that its devices run.

The system is the second half of Lemur (Yen et al., "Meeting SLOs in Cross-Platform NFV", section 4 and appendix A).
"""
