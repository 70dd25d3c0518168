"""The Gaussian process: the surrogate model of the objective. Kernels, targets, fit and posterior."""
