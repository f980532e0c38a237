from ..money import add


class Till:
    def __init__(self, prices):
        self.prices = prices

    def total(self):
        return add(self.prices)
