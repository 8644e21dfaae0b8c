"""Random numbers that random_test.go draws too."""


class Draw:
    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def choice(self, items):
        return items[self.below(len(items))]
