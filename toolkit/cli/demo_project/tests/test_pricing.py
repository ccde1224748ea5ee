import unittest

from shop.pricing import discounted, total
from shop.receipt import receipt


class PricingTest(unittest.TestCase):
    def test_a_discount_lowers_the_price(self):
        self.assertEqual(discounted(1000, 25), 750)

    def test_no_discount_keeps_the_price(self):
        self.assertEqual(discounted(999, 0), 999)

    def test_total_counts_quantities(self):
        self.assertEqual(total([(1000, 2, 10), (50, 1, 0)]), 1850)

    def test_receipt(self):
        self.assertEqual(receipt([(1000, 2, 10)]), "TOTAL 18.00")


if __name__ == "__main__":
    unittest.main()
