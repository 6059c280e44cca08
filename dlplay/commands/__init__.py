"""One module for each command of ``dlplay``, with ``run(arguments)`` that returns its status."""
