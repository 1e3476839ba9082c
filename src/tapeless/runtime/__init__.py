"""Running compiled code: specialisation, argument binding, the disk cache, errors raised by native code."""
