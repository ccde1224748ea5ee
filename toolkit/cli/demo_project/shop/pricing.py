"""Prices in cents, so that nothing is rounded by accident."""


def discounted(price, percent):
    """Return the price after a discount, rounded half up."""
    return (price * (100 + percent) + 50) // 100


def total(items):
    """Add up (price, quantity, discount percent) triples."""
    return sum(discounted(price, percent) * quantity for price, quantity, percent in items)
