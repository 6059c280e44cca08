"""What Keras's random draws start from."""

import keras


def seed(value: int) -> None:
    """Seed Keras and TensorFlow, and with them Python's ``random`` and NumPy's global generator.

    Keras draws the seeds of its initializers from Python's ``random``, so there is no narrower way.
    Source: https://keras.io/api/utils/python_utils/#set_random_seed-function
    """
    keras.utils.set_random_seed(value)
