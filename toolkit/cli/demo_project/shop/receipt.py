"""Receipts as text."""

from shop.pricing import total


def receipt(items):
    """Return one line for the total, with two decimals."""
    cents = total(items)
    return f"TOTAL {cents // 100}.{cents % 100:02}"
