"""Tells users what to do next with a plan.

plan_report     the report: before and after, what was chosen, what was proved
ladder          the arena that each further permission reaches
rung_commands   the commands of the ladder, and the search that they ask for
point_commands  the command for each point of the Pareto front
paste           the lines for the firmware's source
"""
