"""The Gaussian process: what is believed about the objective. Kernels, targets, fit and posterior."""
