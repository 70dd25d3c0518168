"""Integrations: Bounce inside other tools."""
