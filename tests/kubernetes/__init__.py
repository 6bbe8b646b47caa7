"""The extender under the real kube-scheduler, which is built from source."""
