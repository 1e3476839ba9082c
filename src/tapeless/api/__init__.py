"""What the user calls: functions, parallel operators, derivatives."""
