"""What a user does next with a plan that was made.

plan_report     before and after, what was chosen, what was proved
ladder          what each further permission reaches
point_commands  the command for each point of the Pareto front
paste           what goes into the firmware's source
"""
